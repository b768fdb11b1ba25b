"""wheelmem_hops"""
