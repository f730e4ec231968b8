"""What metrics show: readings of database, disk and prices, and figures of tracked programs"""
