"""wheelmem_rules"""
