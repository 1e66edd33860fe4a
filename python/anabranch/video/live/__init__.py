"""Video over real sockets: a sender that hands frames over at their times, and a player that records arrivals.

Both first agree on a description of the clip (`description`). Then packets flow one way (`protocol`).
"""
