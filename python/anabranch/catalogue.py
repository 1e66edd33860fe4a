"""Cards of schemes, and of the components that can be added to them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, overload

from anabranch import _native
from anabranch._native import SchemeError
from anabranch.html import escaped, table_of

if TYPE_CHECKING:
    import pandas

ParameterKind = Literal["switch", "count", "choice", "milliseconds", "decimal", "length", "weights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Parameter of a scheme or a component, such as `trigger` in `cmt(trigger=4)`."""

    name: str
    about: str
    kind: ParameterKind
    default: bool | int | float | str
    source: str
    """Origin of the default: a publication, a program, or `ours`."""
    unit: str
    """Unit of values. Empty if values have no unit, or contain it."""
    min: int | float | None = None
    max: int | float | None = None
    choices: tuple[str, ...] = ()
    """Values of a `choice`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """Rule that is implemented, with its place."""

    name: str
    rule: str
    place: str
    """Path of the file from the root of the repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Point at which the publication is silent or contradictory, and the decision made here."""

    question: str
    answer: str
    parameters: tuple[str, ...]
    """Parameters that select another decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Documentation of a scheme or a component."""

    name: str
    kind: Literal["scheme", "component"]
    about: str
    """Description in one line."""
    source: str
    """Publication, standard or program that defines it."""
    summary: tuple[str, ...]
    """Description in several lines."""
    parameters: tuple[Parameter, ...]
    equations: tuple[Equation, ...]
    choices: tuple[Choice, ...]
    example: str
    """Expression that uses the scheme or component."""
    multipath: bool | None = None
    """For a scheme: `True` if it sends new data on several paths."""
    coupled: bool | None = None
    """For a scheme: `True` if it couples the growth of its paths' windows."""
    unfair_because: str | None = None
    """For a scheme: the reason why it takes more or less than its share of a shared bottleneck, if it does."""
    components: tuple[str, ...] = ()
    """For a scheme: components that can be added to it."""
    role: str | None = None
    """For a component: the part of a scheme that it replaces."""
    needs_multipath: bool | None = None
    """For a component: `True` if it can be added only to schemes that use several paths."""
    schemes: tuple[str, ...] = ()
    """For a component: schemes that it can be added to."""

    def _repr_html_(self) -> str:
        """Returns the view in a notebook: description and parameters."""
        summary = "<br>".join(escaped(line) for line in self.summary)
        head = f"<p><b>{escaped(self.name)}</b> ({escaped(self.kind)}): {escaped(self.about)}</p><p>{summary}</p>"
        source = f"<p>Source: {escaped(self.source)}. Example: <code>{escaped(self.example)}</code></p>"
        if not self.parameters:
            return head + source
        rows = [(each.name, each.default, _range(each), each.about) for each in self.parameters]
        return head + table_of(("parameter", "default", "values", "about"), rows) + source

    def parameter(self, name: str) -> Parameter:
        """Returns the parameter of that name. Raises `SchemeError` if there is none."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise unknown(f"{self.name} has no parameter", name, [parameter.name for parameter in self.parameters])


def _range(parameter: Parameter) -> str:
    """Returns the allowed values of a parameter."""
    if parameter.choices:
        return ", ".join(parameter.choices)
    ends = [f"{end:g}" for end in (parameter.min, parameter.max) if end is not None]
    return " to ".join(ends) + (f" {parameter.unit}" if parameter.unit else "")


class Catalogue(Sequence[Card]):
    """Sequence of cards, by number or by name: `schemes()["cmt"]`. Schemes come first, then components."""

    def __init__(self, cards: Sequence[Card]) -> None:
        self._cards = tuple(cards)

    @property
    def names(self) -> list[str]:
        """Names of the cards."""
        return [card.name for card in self._cards]

    @property
    def schemes(self) -> Catalogue:
        """Cards of schemes, which can run alone."""
        return Catalogue([card for card in self._cards if card.kind == "scheme"])

    @property
    def components(self) -> Catalogue:
        """Cards of components, which are added to a scheme with `+`."""
        return Catalogue([card for card in self._cards if card.kind == "component"])

    @overload
    def __getitem__(self, key: str | int) -> Card: ...
    @overload
    def __getitem__(self, key: slice) -> Catalogue: ...
    def __getitem__(self, key: str | int | slice) -> Card | Catalogue:
        if isinstance(key, slice):
            return Catalogue(self._cards[key])
        if isinstance(key, int):
            return self._cards[key]
        if key not in self.names:
            raise unknown("unknown scheme or component", key, self.names)
        return self._cards[self.names.index(key)]

    def __len__(self) -> int:
        return len(self._cards)

    def __iter__(self) -> Iterator[Card]:
        return iter(self._cards)

    def __contains__(self, key: object) -> bool:
        return key in self._cards or key in self.names

    def __repr__(self) -> str:
        return f"<Catalogue {', '.join(self.names)}>"

    def _repr_html_(self) -> str:
        """Returns the view in a notebook: a row for each card."""
        shown = self.to_pandas()[["name", "kind", "role", "about", "source"]]
        return str(shown.fillna("").to_html(index=False))

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a row for each card.

        Columns: `name`, `kind`, `role`, `about`, `source`, `multipath`, `coupled`, `needs_multipath`, `parameters`
        (their names, separated by blanks), `example`.
        """
        import pandas

        columns = ("name", "kind", "role", "about", "source", "multipath", "coupled", "needs_multipath")
        rows = [
            {
                **{column: getattr(card, column) for column in columns},
                "parameters": " ".join(parameter.name for parameter in card.parameters),
                "example": card.example,
            }
            for card in self._cards
        ]
        return pandas.DataFrame(rows)


def unknown(what: str, name: str, known: list[str]) -> SchemeError:
    """Returns the error for an unknown name."""
    close = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean `{close[0]}`?" if close else ""
    return SchemeError(f"{what} `{name}`; known: {', '.join(known) or 'none'}{hint}")


@cache
def schemes() -> Catalogue:
    """Returns every scheme and component, as `anabranch schemes` lists them.

    >>> schemes()["cmt"].parameter("trigger").default
    3
    >>> [card.name for card in schemes().components if card.role == "acknowledgement"]
    ['nr-sack']
    """
    return Catalogue([card_of(card) for card in json.loads(_native.cards())])


def card_of(card: Mapping[str, Any]) -> Card:
    """Returns the card of an object of the native module."""
    inner = {
        "parameters": tuple(Parameter(**in_tuples(parameter)) for parameter in card["parameters"]),
        "equations": tuple(Equation(**equation) for equation in card["equations"]),
        "choices": tuple(Choice(**in_tuples(choice)) for choice in card["choices"]),
    }
    return Card(**{**in_tuples(card), **inner})


def in_tuples(table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a table with tuples in place of lists, since callers share the cards."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
