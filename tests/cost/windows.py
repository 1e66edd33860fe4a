"""Cost of a packet with windows of different sizes: processor time per packet with DATA of a simulated
association with fixed windows (`tests/examples/window_cost.rs`).

Two runs of different length are compared, so that the start of the process and the filling of windows do not count.
"""

from ratios import Row, spent

# Packets in the windows of all paths together.
WINDOWS = (64, 1024, 16384)
# Round trips of the shortest path in the shorter run; the longest path has an eighth of them.
ROUNDS = 16
# Minimum number of packets in the longer run.
PACKETS = 200_000
# Scheme, paths, and loss. `rack` detects chunks that are lost twice: without it a window waits for T3.
SETTINGS = (
    ("cmt", 2, 0),
    ("cmt", 8, 0),
    ("cmt+nr-sack", 2, 0),
    ("cmt+redundant", 2, 0),
    ("cmt+rack", 2, 0.001),
    ("cmt+rack", 2, 0.01),
    ("cmt+rack", 8, 0.01),
    ("cmt+nr-sack+rack", 2, 0.01),
    ("cmt+redundant+rack", 2, 0.01),
)
GOAL = 1.2


def add_rows(table, program, rounds):
    """Adds the largest cost of a packet with any window, as a ratio to the smallest."""
    for scheme, paths, loss in SETTINGS:
        row = Row(f"cost, most / least of windows: {scheme}, {paths} paths, {100 * loss:g} %", GOAL)
        for _ in range(rounds):
            costs = [cost_us(program, scheme, paths, loss, window) for window in WINDOWS]
            table.add(row, max(costs) / min(costs))
        each = ", ".join(f"{window}: {cost:.2f} us" for window, cost in zip(WINDOWS, costs, strict=True))
        table.notes.append(f"a packet, {scheme}, {paths} paths, {100 * loss:g} % loss, by window: {each}")


def cost_us(program, scheme, paths, loss, window):
    """Returns the processor time per packet with DATA, in microseconds."""

    def run(rounds):
        words = (program, scheme, paths, loss, window, rounds)
        processor_s, printed = spent([str(word) for word in words])
        return processor_s, int(printed)

    more = max(ROUNDS, PACKETS // window)
    (short_s, few), (long_s, many) = run(ROUNDS), run(ROUNDS + more)
    return 1e6 * (long_s - short_s) / (many - few)
