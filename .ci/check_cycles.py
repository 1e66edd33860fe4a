"""Finds sibling modules of a crate that import each other. A module includes all modules below it.

The nodes are the children of one module. An edge leads from one to another if the first, or a module below it, names an
item of the second, or of a module below that: in a `use` or in a path inside the code. A name that a parent re-exports
counts as an import of the module that defines it; one that the parent defines is no import of a sibling.
"""

import re
from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import rust_source

SEGMENTS = r"(?:r#)?[A-Za-z_]\w*(?:\s*::\s*(?:r#)?[A-Za-z_]\w*)+"
PATH = re.compile(rf"(?<![\w:]){SEGMENTS}")
USE = re.compile(r"(?P<public>\bpub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]*);")
VISIBILITY = re.compile(r"\bpub\s*\(\s*in\s+[^)]*\)")
# Maximum number of re-exports of re-exports. It is never reached in a tree that compiles.
DEEPEST = 20


@dataclass
class Module:
    """A module: its path from the root, its file, and the names that its source uses, imports and defines."""

    path: tuple
    file: str
    # Paths in the code and in `use`, each with its line.
    named: list = field(default_factory=list)
    # Paths by the names that a `use` gives them in this module.
    aliases: dict = field(default_factory=dict)
    globs: list = field(default_factory=list)
    defined: set = field(default_factory=set)


def crate_modules(sources, root):
    """Returns the modules of the crate whose `src` is the folder `root`."""
    modules = {}
    for file, text in sources.items():
        place = PurePosixPath(file)
        if not place.is_relative_to(root) or place.suffix != ".rs" or place.name == "main.rs":
            continue
        path = (*place.relative_to(root).parts[:-1], place.stem)
        if place.name in {"lib.rs", "mod.rs"}:
            path = path[:-1]
        modules[path] = parse(path, file, text)
    return modules


def parse(path, file, text):
    code = VISIBILITY.sub(lambda found: rust_source.blank(found.group()), rust_source.code_only(text))
    code = rust_source.without_tests(code)
    module = Module(path, file)
    for found in USE.finditer(code):
        line = rust_source.line_of(code, found.start("tree"))
        for used, alias in use_tree(found["tree"]):
            if used[-1] == "*":
                module.globs.append(used[:-1])
                used = used[:-1]
            else:
                module.aliases[alias] = used
            module.named.append((used, line))
    rest = USE.sub(lambda found: rust_source.blank(found.group()), code)
    for found in PATH.finditer(rest):
        names = tuple(re.split(r"\s*::\s*", found.group()))
        module.named.append((names, rust_source.line_of(rest, found.start())))
    items = r"\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(?:mut\s+)?(\w+)"
    module.defined = set(re.findall(items, rest))
    return module


def use_tree(tree, before=()):
    """Returns the paths that a `use` names, each with its name in the importing module."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        path, _, alias = (part.strip() for part in head.partition(" as "))
        names = (*before, *(name.strip() for name in path.split("::") if name.strip()))
        if names[-1:] == ("self",) and len(names) > 1:
            names = names[:-1]
        if names:
            yield names, alias or names[-1]
        return
    before = (*before, *(name.strip() for name in head.split("::") if name.strip()))
    depth, start = 0, 0
    inside = rest[: rest.rindex("}")]
    for at, character in enumerate(f"{inside},"):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if inside[start:at].strip():
                yield from use_tree(inside[start:at], before)
            start = at + 1


def resolve(modules, module, names, depth=0):
    """Returns the path of the module that defines the item `names` of `module`, or None if another crate does."""
    first, at = names[0], module.path
    if first == "crate":
        at, names = (), names[1:]
    elif first == "self":
        names = names[1:]
    elif first == "super":
        while names and names[0] == "super":
            at, names = at[:-1], names[1:]
    elif (*module.path, first) not in modules:
        alias = module.aliases.get(first)
        if alias is None or alias == names[:1] or depth > DEEPEST:
            return None
        return resolve(modules, module, (*alias, *names[1:]), depth + 1)
    while names and (*at, names[0]) in modules:
        at, names = (*at, names[0]), names[1:]
    return defining(modules, at, names, depth) if names else at


def defining(modules, at, names, depth):
    """Returns the module that defines the first of `names`: the module at `at`, or the one from which that module
    re-exports the name."""
    module = modules.get(at)
    if module is None or names[0] in module.defined or depth > DEEPEST:
        return at
    if (alias := module.aliases.get(names[0])) and alias != names[:1]:
        found = resolve(modules, module, (*alias, *names[1:]), depth + 1)
        return at if found is None else found
    for glob in module.globs:
        target = resolve(modules, module, glob, depth + 1)
        if target in modules and target != at and names[0] in modules[target].defined | modules[target].aliases.keys():
            return defining(modules, target, names, depth + 1)
    return at


def edges(modules):
    """Returns by parent the pairs of children of which the first names an item of the second, each with its first
    place."""
    found = defaultdict(dict)
    for module in modules.values():
        for names, line in module.named:
            other = resolve(modules, module, names)
            if other is None:
                continue
            shared = next((at for at, (a, b) in enumerate(zip(module.path, other, strict=False)) if a != b), None)
            if shared is not None:
                pair = (module.path[shared], other[shared])
                found[module.path[:shared]].setdefault(pair, f"{module.file}:{line}")
    return found


def components(pairs):
    """Yields the sets of nodes that reach each other."""
    following = defaultdict(set)
    for one, other in pairs:
        following[one].add(other)
    reached = {node: reachable(following, node) for node in following}
    done = set()
    for node in sorted(following):
        together = {other for other in reached[node] if node in reached.get(other, ())} | {node}
        if len(together) > 1 and node not in done:
            done |= together
            yield together


def reachable(following, start):
    seen, waiting = set(), [start]
    while waiting:
        new = following.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


def cycle(pairs, nodes):
    """Returns a shortest cycle among these nodes, as pairs."""
    best = None
    for start in sorted(nodes):
        before, waiting = {}, deque([start])
        while waiting and start not in before:
            node = waiting.popleft()
            for one, other in sorted(pairs):
                if one == node and other in nodes and other not in before:
                    before[other] = node
                    waiting.append(other)
        steps, node = [], start
        while not steps or node != start:
            steps.append((before[node], node))
            node = before[node]
        if best is None or len(steps) < len(best):
            best = steps[::-1]
    return best


def import_cycles(sources):
    """Yields each set of siblings that import each other, with one cycle through some of them.

    `sources` contains the text of each source by its name, without files of tests.
    """
    for crate in sorted({PurePosixPath(file).parts[1] for file in sources if file.startswith("crates/")}):
        modules = crate_modules(sources, f"crates/{crate}/src")
        for parent, pairs in sorted(edges(modules).items()):
            where = "::".join((crate, *parent))
            for together in components(pairs):
                steps = "; ".join(f"{a} imports {b} in {pairs[a, b]}" for a, b in cycle(pairs, together))
                yield f"{where}: an import cycle of {', '.join(sorted(together))}: {steps}"
