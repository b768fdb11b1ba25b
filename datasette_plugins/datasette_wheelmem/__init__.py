"""datasette_wheelmem"""
