"""wheelmem_fts5"""
