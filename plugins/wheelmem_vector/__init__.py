"""wheelmem_vector"""
