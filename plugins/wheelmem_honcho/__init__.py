"""wheelmem_honcho"""
