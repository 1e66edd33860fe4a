"""Pairs of schemes that differ in one place: `<V>` is 1 in the first and 2 in the second, and `pick` returns it.

A module `helper_of_test` and a file `value.txt` next to the scheme differ in the same way.
"""

# ruff: noqa: E501
from __future__ import annotations

HELPER = """
VALUE = <V>
TABLE = {"value": <V>}
def function():
    return <V>
def outer():
    return inner()
def inner():
    return VALUE
class Thing:
    value = <V>
    def method(self):
        return <V>
class Base(ab.Scheduler):
    def pick(self, ask, view):
        return <V>
"""

METHOD = """
class Scheme(ab.Scheduler):
    def pick(self, ask, view):
        {}
"""


DATACLASS = """
import dataclasses
@dataclasses.dataclass
class P:
    {}
"""

CODEC = """
import codecs
codecs.register_error('of_test', lambda e: ('x' * <V>, e.end))
"""

RECURSION = """
import sys
sys.setrecursionlimit(3000 * <V>)
def deep(n):
    return deep(n - 1) if n else 0
"""


def method(*lines: str, before: str = "") -> str:
    """Returns a module with a scheme whose method has these lines."""
    return before + METHOD.format("\n        ".join(lines))


def aliased(change: str, answer: str, first: str, second: str) -> str:
    """Returns a module with a scheme whose attributes `a` and `b` are one object for the value 1."""
    return (
        method(change, f"return {answer}").replace("Scheme", "Own")
        + f"def Scheme():\n    made = Own()\n    made.a = {first}\n    made.b = made.a if <V> == 1 else {second}\n"
        + "    return made\n"
    )


VARIATIONS = {
    # Code of the class.
    "constant": method("return <V>"),
    "constant in a nested function": method("def inner():", "    return <V>", "return inner()"),
    "constant in a lambda": method("return (lambda: <V>)()"),
    "constant in a comprehension": method("return [<V> for _ in range(1)][0]"),
    "constant in a generator": method("return next(<V> for _ in range(1))"),
    "constant in a conditional branch": method("return <V> if view is None else 0"),
    "default value": "class Scheme(ab.Scheduler):\n    def pick(self, ask, view, value=<V>):\n        return value\n",
    "keyword default": "class Scheme(ab.Scheduler):\n    def pick(self, ask, view, *, value=<V>):\n        return value\n",
    "default list": "class Scheme(ab.Scheduler):\n    def pick(self, ask, view, value=[<V>]):\n        return value[0]\n",
    "operator": method("return 1 if <V> == 1 else 1 + 1"),
    "other method": method("return self.value()") + "    def value(self):\n        return <V>\n",
    "static method": method("return self.value()") + "    @staticmethod\n    def value():\n        return <V>\n",
    "class method": method("return self.value()") + "    @classmethod\n    def value(cls):\n        return <V>\n",
    "property": method("return self.value") + "    @property\n    def value(self):\n        return <V>\n",
    "cached property": method("return self.value", before="import functools\n")
    + "    @functools.cached_property\n    def value(self):\n        return <V>\n",
    "own descriptor": method(
        "return self.value",
        before="class Get:\n    def __get__(self, of, kind):\n        return <V>\n",
    )
    + "    value = Get()\n",
    "class attribute": method("return self.value") + "    value = <V>\n",
    "class attribute that is a dict": method("return self.value['a']") + "    value = {'a': <V>}\n",
    "class attribute set later": method("return self.value") + "Scheme.value = <V>\n",
    "method set later": method("return 0") + "Scheme.pick = lambda self, ask, view: <V>\n",
    "inherited method": "class Base(ab.Scheduler):\n    def pick(self, ask, view):\n        return <V>\n"
    "class Scheme(Base):\n    def pick(self, ask, view):\n        return super().pick(ask, view)\n",
    "order of bases": "class A:\n    value = 1\nclass B:\n    value = 2\n"
    "class Scheme(*((A, B) if <V> == 1 else (B, A)), ab.Scheduler):\n"
    "    def pick(self, ask, view):\n        return self.value\n",
    "metaclass": "class Meta(type):\n    @property\n    def value(cls):\n        return <V>\n"
    "class Scheme(ab.Scheduler, metaclass=Meta):\n    def pick(self, ask, view):\n        return type(self).value\n",
    "attribute hook": method("return self.value")
    + "    def __getattr__(self, name):\n        if name != 'value':\n            raise AttributeError(name)\n"
    "        return <V>\n",
    "hook of subclasses": "class Base(ab.Scheduler):\n    def __init_subclass__(cls):\n        cls.value = <V>\n"
    "class Scheme(Base):\n    def pick(self, ask, view):\n        return self.value\n",
    "class decorator": "def mark(of):\n    of.value = <V>\n    return of\n@mark" + method("return self.value"),
    "decorator": "def wrap(f):\n    return lambda self, ask, view: f(self, ask, view) * <V>\n"
    "class Scheme(ab.Scheduler):\n    @wrap\n    def pick(self, ask, view):\n        return 1\n",
    "decorator with wraps": "import functools\ndef wrap(f):\n    @functools.wraps(f)\n    def inner(*all):\n"
    "        return f(*all) * <V>\n    return inner\n"
    "class Scheme(ab.Scheduler):\n    @wrap\n    def pick(self, ask, view):\n        return 1\n",
    "partial method": "import functools\nclass Scheme(ab.Scheduler):\n    def value(self, number):\n"
    "        return number\n    get = functools.partialmethod(value, <V>)\n"
    "    def pick(self, ask, view):\n        return self.get()\n",
    "hook of dataclass in a file without a name": "import dataclasses\n@dataclasses.dataclass\n"
    "class Scheme(ab.Scheduler):\n    size: int = 3\n    def __eq__(self, other):\n        return <V>\n    def pick(self, ask, view):\n        return self.__eq__(0)\n",
    "default of a dataclass field": "import dataclasses\n@dataclasses.dataclass\nclass Scheme(ab.Scheduler):\n"
    "    value: int = <V>\n    def pick(self, ask, view):\n        return self.value\n",
    "default of a generated method": DATACLASS.format("k: int = 0")
    + "P.__init__.__defaults__ = (<V>,)\n"
    + method("return P().k"),
    "keyword default of a generated method": DATACLASS.format("k: int = dataclasses.field(default=0, kw_only=True)")
    + "P.__init__.__kwdefaults__['k'] = <V>\n"
    + method("return P().k"),
    "closure of a generated method": DATACLASS.format("k: list = dataclasses.field(default_factory=list)")
    + "P.__init__.__closure__[-1].cell_contents = lambda: [0] * <V>\n"
    + method("return len(P().k)"),
    "comparison of a dataclass field": DATACLASS.format("k: int = dataclasses.field(default=0, compare=<V> == 1)")
    + method("return P(1) == P(2)"),
    "order of a dataclass": "import dataclasses\n@dataclasses.dataclass(order=<V> == 1)\nclass P:\n    k: int = 0\n"
    + method("try:", "    return P(1) < P(2)", "except TypeError:", "    return 0"),
    "arguments of a dataclass in a pattern": DATACLASS.format("a: int = 1\n    b: int = 2")
    + "P.__match_args__ = ('a', 'b') if <V> == 1 else ('b', 'a')\n"
    + method("match P():", "    case P(x):", "        return x"),
    # Functions and attributes under a version.
    "default value under a version": "class Scheme(ab.Scheduler):\n    version = '1'\n"
    "    def pick(self, ask, view, value=<V>):\n        return value\n",
    "keyword default under a version": "class Scheme(ab.Scheduler):\n    version = '1'\n"
    "    def pick(self, ask, view, *, value=<V>):\n        return value\n",
    "text below a decorator under a version": "def wrap(f):\n    return lambda *all: f(*all)\n"
    "class Scheme(ab.Scheduler):\n    version = '1'\n    @wrap\n    def pick(self, ask, view):\n        return <V>\n",
    "text below a decorator with wraps under a version": "import functools\ndef wrap(f):\n    @functools.wraps(f)\n"
    "    def inner(*all):\n        return f(*all)\n    return inner\n"
    "class Scheme(ab.Scheduler):\n    version = '1'\n    @wrap\n    def pick(self, ask, view):\n        return <V>\n",
    "closure of a method under a version": "def make(v):\n    class Scheme(ab.Scheduler):\n        version = '1'\n"
    "        def pick(self, ask, view):\n            return v\n    return Scheme\nScheme = make(<V>)\n",
    "lambda as attribute under a version": method("return self.value()", before="def make(v):\n    return lambda: v\n")
    + "    version = '1'\n    def __init__(self):\n        self.value = make(V)\nV = <V>\n",
    "unreadable closure of an attribute under a version": method(
        "return int(self.value()[0])", before="import numpy\ndef make(v):\n    return lambda: v\n"
    )
    + "    version = '1'\n    def __init__(self):\n        self.value = make(numpy.array([V]))\nV = <V>\n",
    # Attributes of the object.
    "attribute": method("return self.value") + "    def __init__(self):\n        self.value = <V>\n",
    "attribute with underscore": method("return self._value") + "    def __init__(self):\n        self._value = <V>\n",
    "nested attribute": method("return self.value['a'][0]")
    + "    def __init__(self):\n        self.value = {'a': [<V>]}\n",
    "function as attribute": method("return self.value()")
    + "    def __init__(self):\n        self.value = lambda: <V>\n",
    "bound method as attribute": method(
        "return self.value()", before="class A:\n    def get(self):\n        return <V>\n"
    )
    + "    def __init__(self):\n        self.value = A().get\n",
    "helper object": method("return self.value.v", before="class A:\n    def __init__(self):\n        self.v = <V>\n")
    + "    def __init__(self):\n        self.value = A()\n",
    "aliased lists": aliased("self.a.append(0)", "len(self.b)", "[]", "[0, 0]"),
    "aliased equal lists": aliased("self.a.append(0)", "len(self.b)", "[]", "[]"),
    "aliased bytearrays": aliased("self.a[0] = 1", "self.b[0]", "bytearray(1)", "bytearray(1)"),
    "slot": "class Base(ab.Scheduler):\n    __slots__ = ('value',)\nclass Scheme(Base):\n"
    "    def __init__(self):\n        self.value = <V>\n    def pick(self, ask, view):\n        return self.value\n",
    "content of a dict subclass": "class Scheme(ab.Scheduler, dict):\n    def __init__(self):\n        self['a'] = <V>\n"
    "    def pick(self, ask, view):\n        return self['a']\n",
    "iterator as attribute": method("return next(self.value)")
    + "    def __init__(self):\n        self.value = iter([<V>])\n",
    "copy hook": method("return self.value")
    + "    value = 0\n    def __deepcopy__(self, memo):\n        made = Scheme()\n        made.value = <V>\n"
    "        return made\n",
    # Functions and globals.
    "global": method("return VALUE", before="VALUE = <V>\n"),
    "global of a called function": method("return get()", before="VALUE = <V>\ndef get():\n    return VALUE\n"),
    "global list": method("return VALUE[0]", before="VALUE = [<V>]\n"),
    "global object": method("return C.v", before="class A:\n    v = 0\nC = A()\nC.v = <V>\n"),
    "global class": method("return C.v", before="class C:\n    v = <V>\n"),
    "global under another name": method(
        "a(), b()", "return c()", before="def a(): return 1\ndef b(): return 2\nc = a if <V> == 1 else b\n"
    ),
    "attribute of a function": method("return get.value", before="def get(): pass\nget.value = <V>\n"),
    "default of a called function": method("return get()", before="def get(v=<V>):\n    return v\n"),
    "closure": "def make(v):\n    class Scheme(ab.Scheduler):\n        def pick(self, ask, view):\n            return v\n"
    "    return Scheme\nScheme = make(<V>)\n",
    "closure of a helper": method("return get()", before="def make(v):\n    return lambda: v\nget = make(<V>)\n"),
    "partial": method("return get()", before="import functools\nget = functools.partial(int, <V>)\n"),
    "attribute of a partial": method(
        "return get.value", before="import functools\nget = functools.partial(int, 3)\nget.value = <V>\n"
    ),
    "memo of a function": method(
        "return get()",
        before="import functools\nV = <V>\n@functools.lru_cache\ndef get():\n    return V\nget()\nV = 7\n",
    ),
    "generator object": method("return next(G)", before="def make():\n    while True: yield <V>\nG = make()\n"),
    "counter of itertools": method("return next(G)", before="import itertools\nG = itertools.count(<V>)\n"),
    "enumeration": method("return E.A.value", before="import enum\nclass E(enum.Enum):\n    A = <V>\n"),
    "named tuple": method("return P.v", before="import collections\nP = collections.namedtuple('P', 'v')(<V>)\n"),
    "simple namespace": method("return P.v", before="import types\nP = types.SimpleNamespace(v=<V>)\n"),
    "fraction": method("return int(P)", before="import fractions\nP = fractions.Fraction(<V>)\n"),
    "array of numpy": method("return int(P[0])", before="import numpy\nP = numpy.array([<V>])\n"),
    "function of numpy": method(
        "return int(numpy.random.get_state()[1][0])", before="import numpy\nnumpy.random.seed(<V>)\n"
    ),
    "global assigned in a method": method("global COUNT", "COUNT += 1", "return COUNT", before="COUNT = <V> - 1\n"),
    "name of the module": method("return len(__name__)", before="__name__ = 'n' * <V>\n"),
    # Functions, modules and classes that the code imports.
    "imported function": method("return function()", before="from helper_of_test import function\n"),
    "imported value": method("return VALUE", before="from helper_of_test import VALUE\n"),
    "imported function that calls another": method("return outer()", before="from helper_of_test import outer\n"),
    "imported class": method("return Thing().method()", before="from helper_of_test import Thing\n"),
    "module": method("return helper_of_test.function()", before="import helper_of_test\n"),
    "value of a module": method("return helper_of_test.TABLE['value']", before="import helper_of_test\n"),
    "module under another name": method("return h.inner()", before="import helper_of_test as h\n"),
    "base in another module": "import helper_of_test\nclass Scheme(helper_of_test.Base):\n    pass\n",
    "import in a method": method("import helper_of_test", "return helper_of_test.function()"),
    "name imported in a method": method("from helper_of_test import VALUE", "return VALUE"),
    "import in a called function": method(
        "return get()", before="def get():\n    import helper_of_test as h\n    return h.VALUE\n"
    ),
    "import by importlib": method(
        "return importlib.import_module('helper_of_test').VALUE", before="import importlib\n"
    ),
    "import by built-in": method("return __import__('helper_of_test').VALUE"),
    "module as a value": method("h = helper_of_test", "return h.VALUE", before="import helper_of_test\n"),
    "module of modules": method("return sys.modules['helper_of_test'].VALUE", before="import helper_of_test, sys\n"),
    "module in a list": method("return M[0].VALUE", before="import helper_of_test\nM = [helper_of_test]\n"),
    # Built-ins and reflection.
    "open": method("return int(open(PLACE).read())"),
    "open by another name": method("return int(read(PLACE).read())", before="read = open\n"),
    "open of io": method("return int(io.open(PLACE).read())", before="import io\n"),
    "path": method("return int(pathlib.Path(PLACE).read_text())", before="import pathlib\n"),
    "file read by numpy": method("return int(numpy.loadtxt(PLACE))", before="import numpy\n"),
    "open file": method("F.seek(0)", "return int(F.read())", before="F = open(PLACE)\n"),
    "getattr": method("return getattr(helper_of_test, 'VALUE')", before="import helper_of_test\n"),
    "getattr of globals": method("return getattr(self.pick, '__globals__')['HIDDEN']", before="HIDDEN = <V>\n"),
    "globals": method("return globals()['HIDDEN']", before="HIDDEN = <V>\n"),
    "eval": method("return eval('HIDDEN')", before="HIDDEN = <V>\n"),
    "exec": method("found = {}", "exec('v = HIDDEN', globals(), found)", "return found['v']", before="HIDDEN = <V>\n"),
    "compile": method("return eval(compile('HIDDEN', 'x', 'eval'))", before="HIDDEN = <V>\n"),
    "globals of a function": method("return get.__globals__['HIDDEN']", before="HIDDEN = <V>\ndef get(): pass\n"),
    "globals of a method": method("return self.pick.__func__.__globals__['HIDDEN']", before="HIDDEN = <V>\n"),
    "globals in a format": method(
        "return int('{0.__globals__[HIDDEN]}'.format(get))", before="HIDDEN = <V>\ndef get(): pass\n"
    ),
    "globals by attrgetter": method(
        "return G(get)['HIDDEN']",
        before="import operator\nHIDDEN = <V>\nG = operator.attrgetter('__globals__')\ndef get(): pass\n",
    ),
    "frame of a generator": method(
        "g = (x for x in ())", "return g.gi_frame.f_globals['HIDDEN']", before="HIDDEN = <V>\n"
    ),
    "frame of sys": method("return sys._getframe().f_globals['HIDDEN']", before="import sys\nHIDDEN = <V>\n"),
    "frame of an exception": method(
        "try:",
        "    1 // 0",
        "except ZeroDivisionError as e:",
        "    return e.__traceback__.tb_frame.f_globals['HIDDEN']",
        before="HIDDEN = <V>\n",
    ),
    "subclasses": method(
        "return [c for c in ab.Scheduler.__subclasses__() if c.__name__ == 'Hid'][-1].v",
        before="class Hid(ab.Scheduler):\n    v = <V>\n",
    ),
    "pattern of match": method(
        "match get:",
        "    case object(__globals__=g):",
        "        return g['HIDDEN']",
        before="HIDDEN = <V>\ndef get(): pass\n",
    ),
    "class in a method": method("class A:", "    v = HIDDEN", "return A.v", before="HIDDEN = <V>\n"),
    "replaced built-in": method("return min(1, 2)", before="min = lambda *a: <V>\n"),
    "environment": method(
        "return int(os.environ['ANABRANCH_TEST_V'])", before="import os\nos.environ['ANABRANCH_TEST_V'] = '<V>'\n"
    ),
    "recursion limit": method(
        "return sys.getrecursionlimit() - 5000", before="import sys\nsys.setrecursionlimit(5000 + <V>)\n"
    ),
    "arguments of the program": method("return int(sys.argv[-1])", before="import sys\nsys.argv = ['x', '<V>']\n"),
    "state of random": method("return random.random()", before="import random\nrandom.seed(<V>)\n"),
    "changed randomness": method(
        "return self.random.random()", before="import random\nrandom.Random.random = lambda self: <V>\n"
    ),
    "changed choice": method(
        "return self.random.choice([1, 2])",
        before="import random\nrandom.Random.choice = lambda self, of: of[<V> - 1]\n",
    ),
    "changed compiled randomness": method(
        "return self.random.random()", before="import _random\n_random.Random.random = lambda self: <V>\n"
    ),
    "changed global of random": method(
        "return self.random.expovariate(1.0)", before="import random\nrandom._log = lambda x: -float(<V>)\n"
    ),
    "object as method of random": method(
        "return self.random.choice()",
        before="import random\nclass A:\n    def __call__(self):\n        return <V>\nrandom.Random.choice = A()\n",
    ),
    "handler of errors in decode": method("return len(b'\\xff'.decode('ascii', 'of_test'))", before=CODEC),
    "handler of errors in encode": method("return len('\\xff'.encode('ascii', 'of_test'))", before=CODEC),
    "handler of errors in a pattern": method(
        "match T:",
        "    case str(encode=e):",
        "        return len(e('ascii', 'of_test'))",
        before=CODEC + "T = '\\xff'\n",
    ),
    "handler of errors in str": method("return len(str(B, 'ascii', 'of_test'))", before=CODEC + "B = b'\\xff'\n"),
    "handler of errors in str of a number": method(
        "return len(str((255).to_bytes(1, 'big'), 'ascii', 'of_test'))", before=CODEC
    ),
    "handler of errors in bytes": method("return len(bytes('\\xff', 'ascii', 'of_test'))", before=CODEC),
    "handler of errors in bytearray": method("return len(bytearray('\\xff', 'ascii', 'of_test'))", before=CODEC),
    "recursion limit of a caught error": method(
        "try:", "    return deep(4000)", "except RecursionError:", "    return 1", before=RECURSION
    ),
    "recursion limit of a caught exception": method(
        "try:", "    return deep(4000)", "except (KeyError, Exception):", "    return 1", before=RECURSION
    ),
    "recursion limit of any caught exception": method(
        "try:", "    return deep(4000)", "except KeyError:", "    return 2", "except:", "    return 1", before=RECURSION
    ),
    "recursion limit of a caught exception by another name": method(
        "try:",
        "    return deep(4000)",
        "except E:",
        "    return 1",
        before=RECURSION + "E = (KeyError, RuntimeError)\n",
    ),
    "recursion limit of an exception in finally": method(
        "v = 1",
        "try:",
        "    deep(4000)",
        "    v = 0",
        "finally:",
        "    return v",
        before=RECURSION,
    ),
    "recursion limit of an exception in with": method(
        "with A():",
        "    return deep(4000)",
        "return 1",
        before=RECURSION
        + "class A:\n    def __enter__(self):\n        pass\n    def __exit__(self, *all):\n        return True\n",
    ),
    "filter of a caught warning": method(
        "try:",
        "    return 1 if (0).__eq__('') else 1",
        "except Warning:",
        "    return 2",
        before="import warnings\nwarnings.simplefilter('ignore' if <V> == 1 else 'error')\n",
    ),
    "context of decimals": method(
        "return decimal.getcontext().prec", before="import decimal\ndecimal.getcontext().prec = <V>\n"
    ),
    "registry of copyreg": method("return self.value", before="import copyreg\n")
    + "def make():\n    made = object.__new__(Scheme)\n    made.value = <V>\n    return made\n"
    "copyreg.pickle(Scheme, lambda scheme: (make, ()))\n",
    "changed standard module": method("return math.floor(0)", before="import math\nmath.floor = lambda x: <V>\n"),
    "exchanged functions of a standard module": method(
        "return math.floor(0.5)", before="import math\nmath.floor = math.ceil if <V> == 1 else math.trunc\n"
    ),
    "changed value of a standard module": method("return math.pi", before="import math\nmath.pi = <V>\n"),
    "added to a standard module": method("return math.mine", before="import math\nmath.mine = <V>\n"),
    "changed base of the package": method("return self.mine", before="ab.Scheduler.mine = <V>\n"),
    "changed method of the package": method("self.on_event(None, None)", "return self.k")
    + "    k = 0\nab.Scheduler.on_event = lambda self, event, view: setattr(self, 'k', <V>)\n",
    "attribute of a method of the package": method("return ab.Scheduler.pick.k", before="ab.Scheduler.pick.k = <V>\n"),
    "changed type of the engine": method("return ab.Wait.mine", before="ab.Wait.mine = <V>\n"),
    "user's module under a standard name": method(
        "return statistics.mean()",
        before="import types\nstatistics = types.ModuleType('statistics')\nstatistics.mean = lambda: <V>\n",
    ),
}

HONEST = {
    "shortest queue": method(
        "return min(view.ready(), key=queueing, default=None)",
        before="def queueing(path):\n    return (path.latest_rtt_ms or 0) - (path.min_rtt_ms or 0)\n",
    ),
    "decision": method("return ab.Decision(0, 'rule', 'figure', 1.0)"),
    "math": method("return math.floor(math.sqrt(2) * math.pi)", before="import math\n"),
    "function of math": method("return floor(2.5)", before="from math import floor\n"),
    "deque": method("self.last.append(1)", "return len(self.last)", before="import collections\n")
    + "    def __init__(self):\n        self.last = collections.deque(maxlen=8)\n",
    "defaultdict": method("self.n[0] += 1", "return 0", before="from collections import defaultdict\n")
    + "    def __init__(self):\n        self.n = defaultdict(int)\n",
    "heap": method("heapq.heappush(self.h, 1)", "return 0", before="import heapq\n")
    + "    def __init__(self):\n        self.h = []\n",
    "itertools": method("return list(itertools.islice(itertools.cycle([0]), 3))[0]", before="import itertools\n"),
    "randomness of the run": method("return self.random.choice(view.ready())"),
    "table of weights": method("return W['wifi']", before="W = {'wifi': 2, 'lte': 1}\n"),
    "class of settings": method("return S.limit", before="class S:\n    limit = 3\n"),
    "helper object": method(
        "return self.e.add(1)",
        before="class Ewma:\n    def __init__(self, a):\n"
        "        self.a, self.v = a, 0\n    def add(self, x):\n        self.v += self.a * (x - self.v)\n"
        "        return self.v\n",
    )
    + "    def __init__(self):\n        self.e = Ewma(0.1)\n",
    "helper dataclass": method(
        "return S(3).limit", before="import dataclasses\n@dataclasses.dataclass\nclass S:\n    limit: int\n"
    ),
    "frozen dataclass": "import dataclasses\n@dataclasses.dataclass(frozen=True, order=True)\nclass Scheme(ab.Scheduler):\n"
    "    limit: int = 2\n    names: list = dataclasses.field(default_factory=list)\n    def __post_init__(self):\n"
    "        pass\n    def pick(self, ask, view):\n        return self.limit\n",
    "super": "class A(ab.Scheduler):\n    def __init__(self, v=1):\n        super().__init__()\n        self.v = v\n"
    "class Scheme(A):\n    def __init__(self, v=1):\n        if v > 2:\n            v = 2\n        super().__init__(v)\n    def pick(self, ask, view):\n        return self.v\n",
    "loop over items": method("for key, value in self.t.items():", "    self.n += value", "return self.n")
    + "    def __init__(self):\n        self.n, self.t = 0, {'a': 1}\n",
    "sorted items": method("return sorted(W.items())", before="W = {'wifi': 2, 'lte': 1}\n"),
    "highest of the list of items": method("return max(list(W.items()))", before="W = {'wifi': 2, 'lte': 1}\n"),
    "membership in keys": method("return 1 if view in self.t.keys() else len([*self.t.keys()])")
    + "    def __init__(self):\n        self.t = {'a': 1}\n",
    "init of a named class": "class A(ab.Scheduler):\n    def __init__(self, v=1):\n        self.v = v\n"
    "class Scheme(A):\n    def __init__(self, v=1):\n        if v > 2:\n            v = 2\n        A.__init__(self, v)\n    def pick(self, ask, view):\n"
    "        return self.v\n",
    "caught error": method("try:", "    return W['x']", "except KeyError:", "    return 0", before="W = {}\n"),
    "caught errors": method(
        "try:",
        "    return W['x']",
        "except (KeyError, Odd) as error:",
        "    return len(error.args)",
        "except IndexError:",
        "    return 0",
        before="W = {}\nclass Odd(ValueError):\n    pass\n",
    ),
    "distributions of the run": method(
        "return self.random.gauss(0, 1) + self.random.sample([1, 2], 1)[0] + self.random.expovariate(1)"
    ),
    "membership": method("return 1 if view in {'a', 'b'} else 0"),
    "own exception": method("raise Odd(f'{view}')", before="class Odd(ValueError):\n    pass\n"),
    "plain format": method("return ab.Decision(0, 'rule {:.1f} {}'.format(1, 2))"),
    "match": method("match view:", "    case [a, b]:", "        return 0", "return 1"),
    "recursion": method("return f(3)", before="def f(n):\n    return f(n - 1) if n else 0\n"),
    "several slots": "class Scheme(ab.Scheduler, ab.Retransmit):\n    def pick(self, ask, view):\n        return 0\n"
    "    def route(self, chunk, view):\n        return chunk.path\n    def on_event(self, event, view):\n        pass\n",
}
