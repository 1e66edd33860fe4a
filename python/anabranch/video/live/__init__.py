"""Video over real sockets: a sender that hands frames over at their times, and a player that notes what arrives.

The two agree on a description of the clip first (`description`), and then packets go one way (`protocol`).
"""
