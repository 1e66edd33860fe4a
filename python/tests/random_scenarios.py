"""Random valid scenarios, as the dictionaries of their files."""

from __future__ import annotations

import random
from typing import Any

NAME_LETTERS = "abcXYZ019-_"
ODD_TEXT = [
    "plain",
    'with "quotes"',
    "a\\b",
    "tab\there",
    "zwei Wörter",
    "日本語",
    "\u200b",
    "#",
    "[x]",
    "= 1",
    "'",
    "🦀\x7f",
]


class Maker:
    """Generator of scenarios from the numbers of one random generator."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def maybe(self, table: dict[str, Any], **makers: Any) -> dict[str, Any]:
        """Returns a table with some of these keys."""
        for key, make in makers.items():
            if self.random.random() < 0.5:
                table[key] = make()
        return table

    def time(self, most_ms: int = 1000) -> str:
        number = self.random.randint(1, most_ms)
        return self.random.choice([f"{number} ms", f"{number}ms", f"{number * 1000} us", f"{number / 1000} s"])

    def rate(self) -> str:
        return f"{self.random.choice([1, 1.5, 387, 10])} {self.random.choice(['kbit/s', 'Mbit/s', 'Gbit/s'])}"

    def size(self) -> str:
        return (
            f"{self.random.randint(1500, 65000)} B"
            if self.random.random() < 0.5
            else self.random.choice(["64 KiB", "2 MB"])
        )

    def queue(self) -> str:
        return self.random.choice(["1 packet", "50 packets", "64 KiB", "100 ms", "20000 B"])

    def probability(self) -> float | int | str:
        return self.random.choice([0, 1, 0.0, self.random.random(), 1e-300, "1 %", "0.25%"])

    def text(self) -> str:
        return self.random.choice(ODD_TEXT)

    def flag(self) -> bool:
        return self.random.random() < 0.5

    def name(self, index: int) -> str:
        letters = [self.random.choice(NAME_LETTERS) for _ in range(self.random.randint(0, 6))]
        return f"{''.join(letters)}x{index}"

    def loss_table(self, *, directed: bool) -> dict[str, Any]:
        model = self.random.choice(["bernoulli", "gilbert-elliott", "trace"])
        table: dict[str, Any] = {"model": model}
        if model == "bernoulli":
            table["rate"] = self.probability()
        elif model == "trace":
            table["lost"] = [self.random.randint(1, 2**40) for _ in range(self.random.randint(0, 4))]
        else:
            table.update(p=self.probability(), r=self.random.choice([1, 0.3, "5 %"]))
            self.maybe(table, loss_good=self.probability, loss_bad=self.probability)
        self.maybe(table, where=lambda: self.random.choice(["before-queue", "after-queue"]))
        if directed:
            self.maybe(table, direction=lambda: self.random.choice(["forward", "reverse", "both"]))
        return table

    def loss(self, *, directed: bool) -> Any:
        form = self.random.randrange(3)
        if form == 0:
            return self.probability()
        if form == 1:
            return self.loss_table(directed=directed)
        return [self.loss_table(directed=directed) for _ in range(self.random.randint(0, 3))]

    def background(self) -> dict[str, Any]:
        kind = self.random.choice(["cbr", "poisson", "pareto", "transfers", "video"])
        reacts = kind in ("transfers", "video")
        table = {"kind": kind, "rate": self.rate()}
        if reacts:
            self.maybe(table, control=lambda: self.random.choice(["cubic", "newreno"]))
        else:
            table["packet"] = "1200 B"
        if kind == "cbr":
            self.maybe(table, jitter=self.random.random)
        if kind == "transfers":
            self.maybe(table, min_size=lambda: "2 KiB", max_size=lambda: "20 MB", shape=lambda: 1.2)
        if kind == "video":
            self.maybe(table, segment=self.time)
        if kind == "pareto":
            self.maybe(table, burst=self.time, idle=self.time, shape=lambda: 1.2, fragment=lambda: "600 B")
        return self.maybe(
            table,
            direction=lambda: self.random.choice(["forward", "reverse"]),
            start=self.time,
            stop=lambda: "2 h",
            count=lambda: self.random.randint(1, 16 if reacts else 1000),
        )

    def event(self, index: int) -> dict[str, Any]:
        table = {"at": f"{index + 1} s", "up": self.flag()}
        directed = {"direction": self.random.choice(["forward", "reverse"])} if self.flag() else {}
        self.maybe(table, rate=self.rate, delay=self.time, loss=lambda: self.loss(directed=not directed))
        return {**table, **directed}

    def some(self, make: Any, most: int = 2) -> list[Any]:
        return [make(index) for index in range(self.random.randint(0, most))]

    def link(self, table: dict[str, Any]) -> dict[str, Any]:
        """Adds the keys of a link to a table."""
        table.update(rate=self.rate(), delay=self.time())
        # A loss with direction "reverse" and a loss in `reverse` exclude each other.
        if self.flag():
            self.maybe(table, loss=lambda: self.loss(directed=True))
            back = self.maybe({}, rate=self.rate, delay=self.time, queue=self.queue)
        else:
            self.maybe(table, loss=self.probability)
            back = self.maybe({}, rate=self.rate, loss=lambda: self.loss(directed=False))
        self.maybe(table, queue=self.queue, reverse=lambda: back)
        for key, items in (("background", self.some(lambda _: self.background())), ("event", self.some(self.event))):
            if items:
                table[key] = items
        return table

    def path(self, index: int, links: list[str]) -> dict[str, Any]:
        table: dict[str, Any] = self.maybe({}, name=lambda: self.name(index))
        via = self.random.sample(links, self.random.randint(0, len(links)))
        if index == 0:  # so that each link is used
            via = links
        if via:
            table["via"] = via
        return table if via and self.flag() else self.link(table)

    def flow(self, index: int, paths: list[str]) -> dict[str, Any]:
        kind = self.random.choice(["bulk", "file", "messages", None])
        table: dict[str, Any] = {} if kind is None else {"kind": kind}
        if kind == "file":
            table.update({"path": self.text()} if self.flag() else {"size": self.size()})
        if kind == "messages":
            table.update(size=self.size(), interval=self.time())
            counts = {"count": lambda: self.random.randint(1, 10**12), "streams": lambda: self.random.randint(1, 65535)}
            self.maybe(table, ordered=self.flag, **counts)
        return self.maybe(
            table,
            name=lambda: self.name(index),
            start=self.time,
            paths=lambda: self.random.sample(paths, self.random.randint(1, len(paths))),
            scheme=lambda: self.random.choice(["cmt", "sctp", "cmt( trigger = 4 )"]),
            direction=lambda: self.random.choice(["forward", "reverse", "both"]),
            read_rate=self.rate,
        )

    def run(self) -> dict[str, Any]:
        seeds = [lambda: self.random.randint(1, 100_000), lambda: self.random.sample(range(10**6), 3)]
        return self.maybe(
            {"duration": "3 h"},
            schemes=lambda: self.random.sample(["cmt", "sctp", "cmt-pf(pf=pf1)", "all"], 2),
            seeds=lambda: self.random.choice(seeds)(),
            profile=lambda: self.random.choice(["rfc9260", "ns2", "net"]),
            start=self.time,
            warmup=self.time,
        )

    def association(self) -> dict[str, Any]:
        return self.maybe(
            {},
            recv_buffer=self.size,
            send_buffer=lambda: self.random.choice(["unlimited", "1 MiB"]),
            streams=lambda: self.random.randint(1, 65535),
            ordered=self.flag,
            message=self.size,
            mtu=lambda: f"{self.random.randint(576, 65535)} B",
            encapsulation=lambda: self.random.choice(["none", "udp"]),
        )

    def definitions(self) -> dict[str, Any]:
        bases = ["cmt", "cmt(trigger=4)", "cmt-pf( rtx = rtx-same )+ecf"]
        names = [f"mine-{index}" for index in self.random.sample(range(9), self.random.randint(1, 3))]
        return {name: self.maybe({"expression": self.random.choice(bases)}, about=self.text) for name in names}

    def scenario(self) -> dict[str, Any]:
        """Returns a complete scenario."""
        links = [
            self.link(self.maybe({}, name=lambda index=index: self.name(index)))
            for index in range(self.random.randint(0, 2))
        ]
        link_names = [link.get("name", f"link-{index + 1}") for index, link in enumerate(links)]
        paths = [self.path(index, link_names) for index in range(self.random.randint(1, 4))]
        path_names = [path.get("name", f"path-{index + 1}") for index, path in enumerate(paths)]
        flows = self.some(lambda index: self.flow(index, path_names), 3)
        table: dict[str, Any] = {"run": self.run(), "path": paths}
        self.maybe(table, association=self.association, scheme=self.definitions)
        for key, items in (("link", links), ("flow", flows)):
            if items:
                table[key] = items
        return table


def random_scenario(seed: int) -> dict[str, Any]:
    """Returns the dictionary of a valid scenario file, another one for each seed."""
    return Maker(seed).scenario()
