"""Prints the departure times of packets from a replayed Mahimahi trace, by the rule of its LinkQueue::rationalize.

Usage: oracle.py TRACE < ARRIVALS. Each line of ARRIVALS has a time in ns and a size in bytes. Each line of the output
has the time in ns at which that packet leaves. The queue is unlimited.
Written from Mahimahi's description, without the simulator's code.
"""

import sys
from collections import deque

OPPORTUNITY = 1504  # bytes, PACKET_SIZE in Mahimahi
MS = 1_000_000


def departures(schedule, arrivals):
    left = []  # departure times in the order of arrival
    waiting = deque()  # remaining bytes of each packet that has arrived and not departed
    coming = deque(arrivals)
    base, position = 0, 0
    while len(left) < len(arrivals):
        now = (base + schedule[position]) * MS
        position += 1
        if position == len(schedule):
            position, base = 0, base + schedule[-1]
        # An opportunity is burned before a packet that arrives at the same time is taken in.
        while coming and coming[0][0] < now:
            waiting.append(coming.popleft()[1])
        budget = OPPORTUNITY
        while budget > 0 and waiting:
            sent = min(budget, waiting[0])
            budget -= sent
            waiting[0] -= sent
            if waiting[0] == 0:
                waiting.popleft()
                left.append(now)
    return left


def main():
    with open(sys.argv[1], encoding="ascii") as trace:
        schedule = [int(line) for line in trace]
    arrivals = [tuple(map(int, line.split())) for line in sys.stdin]
    print("\n".join(map(str, departures(schedule, arrivals))))


main()
