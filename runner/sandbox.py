"""Jinja for templates that nobody has read: they compute texts, reach nothing else, and end.

A template reads data and calls the functions that it is given, macros, and methods and filters that only compute. All
that it makes is counted: characters, values in lists, steps of loops and calls. Where the count is used up, it ends.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from types import BuiltinMethodType, MappingProxyType, MethodType
from typing import Any

import jinja2
import jinja2.nodes as syntax
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import LoopContext, Macro
from jinja2.sandbox import SandboxedEnvironment
from jinja2.visitor import NodeTransformer

from runner.errors import RunnerError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What one template may make, in characters. A step of a loop, a call and a value of a list count as some.
MOST = 40_000_000
STEP = 20
# The columns by which JSON is indented, and the bits of a number.
WIDEST, MOST_BITS = 1_000, 4_000

FILTERS = _words(
    "abs capitalize count d default dictsort first float groupby indent int items join last length list "
    "lower map max min reject rejectattr replace reverse round select selectattr sort string sum title tojson trim "
    "truncate unique upper urlencode wordcount"
)
METHODS: dict[type, Collection[str]] = {
    str: _words(
        "capitalize casefold center count endswith find index isalnum isalpha isascii isdecimal isdigit islower "
        "isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rjust rpartition rsplit "
        "rstrip split splitlines startswith strip swapcase title upper zfill"
    ),
    list: ("append", "count", "extend", "index"),
    tuple: ("count", "index"),
    dict: ("get", "items", "keys", "values"),
}
# Methods of the runner's own data.
OWN_METHODS = ("at", "groups")
PADDING = ("zfill", "ljust", "rjust", "center")
# Fields of formats, by what begins them, whose width is large, or only known when they are filled in.
WIDE = {
    "%": re.compile(r"%(\([^)]*\))?[-#0 +.\d]*(\d{4}|\*)"),
    "{": re.compile(r"\{[^{}]*(:[^{}]*\d{4}|\{)"),
}


class TestTag(Extension):
    """`{% test NAME(model, ...) %} ... {% endtest %}` is another way to write the macro `test_NAME`."""

    tags = {"test"}  # noqa: RUF012

    def parse(self, parser: Parser) -> syntax.Node:
        line = next(parser.stream).lineno
        macro = syntax.Macro(lineno=line)
        macro.name = f"test_{parser.parse_assign_target(name_only=True).name}"
        parser.parse_signature(macro)
        macro.body = parser.parse_statements(("name:endtest",), drop_needle=True)
        return macro


class Sandbox(SandboxedEnvironment):
    """An environment whose templates see some names, and may call those of them that are functions. What a template
    has made is counted from `begin` on. `instead` says what to do where people look for a name or a tag in vain.
    """

    intercepted_binops = frozenset(("+", "*", "**", "%"))
    instead: Mapping[str, str] = MappingProxyType({})

    def __init__(self, names: Mapping[str, Any], **options: Any) -> None:
        super().__init__(undefined=jinja2.StrictUndefined, extensions=["jinja2.ext.do", TestTag], **options)
        self.left = MOST
        self.callables: set[Any] = set()
        kept = {name: self.globals[name] for name in ("range", "dict", "namespace")}
        self.globals.clear()
        self.offer({**kept, **names})
        del self.tests["in"]
        self.filters = {name: self._counted(self.filters[name], CHECKS.get(name)) for name in FILTERS}
        self.filters |= {
            "_spend": _spend,
            "_tested": _tested,
            "_compared": self._read,
            "_joined": self._joined,
            "_made": self.made,
            "format": self._formatted,
        }
        self.finalize = self.made

    def offer(self, names: Mapping[str, Any]) -> None:
        """Lets templates see some names more."""
        self.globals.update(names)
        self.callables.update(value for value in names.values() if callable(value))

    def offer_filters(self, filters: Mapping[str, Callable[..., Any]]) -> None:
        self.filters |= {name: self._counted(one) for name, one in filters.items()}

    # --- what is made

    def begin(self) -> None:
        self.left = MOST

    def spend(self, characters: int) -> None:
        """Counts; raises `template-size` where nothing is left."""
        self.left -= max(characters, 0)
        if self.left < 0:
            raise too_much()

    def made(self, value: Any) -> Any:
        """The value, counted with all that is in it."""
        if type(value) is str:
            self.spend(len(value))
            return value
        rest = [value]
        while rest:
            one = rest.pop()
            self.spend(STEP + len(one) if isinstance(one, str) else STEP)
            if isinstance(one, (list, tuple)):
                rest.extend(one)
            elif isinstance(one, dict):
                rest.extend(one.keys())
                rest.extend(one.values())
        return value

    def _read(self, value: Any) -> Any:
        """The value, of which each part is looked at."""
        if isinstance(value, str):
            self.spend(len(value))
        elif isinstance(value, (list, tuple, dict, range)):
            self.spend(STEP * len(value))
        return value

    def _joined(self, parts: list[Any]) -> str:
        """What `~` makes."""
        texts = [part if type(part) is str else str(self.made(part)) for part in parts]
        self.spend(sum(map(len, texts)))
        return "".join(texts)

    def _counted(self, filter_: Callable[..., Any], check: Callable[..., int] | None = None) -> Callable[..., Any]:
        """A filter whose result is counted, and of which `check` says before how large it will be."""

        @functools.wraps(filter_)
        def counted(*arguments: Any, **named: Any) -> Any:
            if check:
                arguments = tuple(list(one) if hasattr(one, "__next__") else one for one in arguments)
                self._afford(check(*(one for one in arguments if not isinstance(one, PASSED)), **named))
            for one in arguments:
                self._read(one)
            result = filter_(*arguments, **named)
            return self.made(result) if isinstance(result, (str, list)) else result

        return counted

    def _afford(self, characters: int) -> None:
        if characters > self.left:
            raise too_much()

    def _formatted(self, text: str, *arguments: Any, **named: Any) -> Any:
        return self.call_binop(None, "%", str(text), named or arguments)

    def afford_format(self, text: str, begins: str, arguments: Any) -> None:
        """Each field may be filled in with all arguments."""
        if WIDE[begins].search(text.replace(2 * begins, "")):
            message = f'a field of "{text}" is too wide, or its width is not known'
            raise RunnerError("template-size", message, hint="give a width of up to three digits")
        left = self.left
        self.made(arguments)
        self._afford(text.count(begins) * (left - self.left))

    # --- what may be read and called

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return super().is_safe_attribute(obj, attr, value) and (not callable(value) or self.is_safe_callable(value))

    def is_safe_callable(self, obj: Any) -> bool:
        if isinstance(obj, (Macro, LoopContext, _Format)):
            return True
        if isinstance(obj, BuiltinMethodType):
            return obj.__name__ in METHODS.get(type(obj.__self__), ())
        if isinstance(obj, MethodType) and obj not in self.callables:
            is_own = type(obj.__self__).__module__.startswith("runner.") and obj.__name__ in OWN_METHODS
            return is_own or isinstance(obj.__self__, LoopContext)
        return obj in self.callables

    def wrap_str_format(self, value: Any) -> Any:
        wrapped = super().wrap_str_format(value)
        return _Format(self, value.__self__, wrapped) if wrapped else None

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        __self.spend(STEP)
        for one in (*args, *kwargs.values()):
            if isinstance(one, (list, tuple, dict)):
                __self.made(one)
        if isinstance(__obj, BuiltinMethodType) and isinstance(__obj.__self__, str):
            __self.spend(len(__obj.__self__))
            __self._afford(size_of_call(__obj.__self__, __obj.__name__, *args))
            return __self.made(super().call(__context, __obj, *args, **kwargs))
        result = super().call(__context, __obj, *args, **kwargs)
        return __self.made(result) if isinstance(result, dict) else result

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            self.afford_format(left, "%", right)
        self._afford(size_of_operation(operator, left, right))
        result = super().call_binop(context, operator, left, right)
        return self.made(result) if isinstance(result, (str, list, tuple)) else result

    def _parse(self, source: str, name: str | None, filename: str | None) -> syntax.Template:
        tree: syntax.Template = _Counting().visit(super()._parse(source, name, filename))
        tree.set_environment(self)
        return tree


class _Format:
    """The method `format` of a text."""

    def __init__(self, sandbox: Sandbox, text: str, method: Callable[..., str]) -> None:
        self.sandbox, self.text, self.method = sandbox, text, method

    def __call__(self, *arguments: Any, **named: Any) -> str:
        self.sandbox.afford_format(self.text, "{", [arguments, named])
        text: str = self.sandbox.made(self.method(*arguments, **named))
        return text


PASSED = (jinja2.Environment, jinja2.runtime.Context, jinja2.nodes.EvalContext)


@jinja2.pass_context
def _spend(context: Any, characters: int) -> None:
    """Not computed when a template is compiled, because it needs the context."""
    context.environment.spend(characters)


@jinja2.pass_context
def _tested(context: Any, result: Any) -> Any:
    """The result of the test of a step of a loop."""
    context.environment.spend(STEP)
    return result


class _Counting(NodeTransformer):
    """Lets a template count its steps and calls, what it looks at, and the texts and lists that it makes."""

    def visit_For(self, node: syntax.For) -> Any:
        if node.test:
            node.test = _filter(node.test, "_tested", node.lineno)
        return self._with_steps(node)

    def visit_Macro(self, node: syntax.Macro) -> Any:
        return self._with_steps(node)

    def visit_CallBlock(self, node: syntax.CallBlock) -> Any:
        return self._with_steps(node)

    def _with_steps(self, node: Any) -> Any:
        self.generic_visit(node)
        written = sum(len(data.data) for data in node.find_all(syntax.TemplateData))
        spend = _filter(syntax.Const(STEP + written), "_spend", node.lineno)
        node.body.insert(0, syntax.ExprStmt(spend, lineno=node.lineno))
        return node

    def visit_Compare(self, node: syntax.Compare) -> syntax.Compare:
        self.generic_visit(node)
        operands: list[Any] = [node, *node.ops]
        for one in operands:
            if not isinstance(one.expr, syntax.Const):
                one.expr = _filter(one.expr, "_compared", node.lineno)
        return node

    def visit_Getitem(self, node: syntax.Getitem) -> syntax.Expr:
        self.generic_visit(node)
        return _filter(node, "_made", node.lineno) if isinstance(node.arg, syntax.Slice) else node

    def visit_Concat(self, node: syntax.Concat) -> syntax.Expr:
        self.generic_visit(node)
        return _filter(syntax.List(node.nodes, lineno=node.lineno), "_joined", node.lineno)

    def visit_List(self, node: syntax.List) -> syntax.Expr:
        self.generic_visit(node)
        return node if _are_constant(node.items) else _filter(node, "_made", node.lineno)

    def visit_Tuple(self, node: syntax.Tuple) -> syntax.Expr:
        self.generic_visit(node)
        return node if node.ctx != "load" or _are_constant(node.items) else _filter(node, "_made", node.lineno)

    def visit_Dict(self, node: syntax.Dict) -> syntax.Expr:
        self.generic_visit(node)
        return node if _are_constant(pair.value for pair in node.items) else _filter(node, "_made", node.lineno)

    def visit_Include(self, node: syntax.Include) -> None:
        self._refuse("include", node)

    def visit_Import(self, node: syntax.Import) -> None:
        self._refuse("import", node)

    def visit_FromImport(self, node: syntax.FromImport) -> None:
        self._refuse("import", node)

    def visit_Extends(self, node: syntax.Extends) -> None:
        self._refuse("extends", node)

    def _refuse(self, word: str, node: syntax.Node) -> None:
        raise jinja2.TemplateSyntaxError(f'"{word}" is not for templates here: macros are called by name', node.lineno)


def _filter(value: Any, name: str, line: int) -> syntax.Filter:
    return syntax.Filter(value, name, [], [], None, None, lineno=line)


def _are_constant(nodes: Iterable[syntax.Expr]) -> bool:
    return all(isinstance(node, syntax.Const) for node in nodes)


# --- how large a result will be


def size_of_operation(operator: str, left: Any, right: Any) -> int:
    """At least the characters that an operation makes; more than there may be for a number with too many bits.

    >>> size_of_operation("*", "ab", 1000), size_of_operation("**", 2, 10), size_of_operation("**", 10, 10**10) > MOST
    (2000, 0, True)
    """
    match left, right:
        case (str() | list() | tuple(), int()) if operator == "*":
            return len(left) * right * (1 if isinstance(left, str) else STEP)
        case (int(), str() | list() | tuple()) if operator == "*":
            return size_of_operation(operator, right, left)
        case (list() | tuple(), list() | tuple()):
            return (len(left) + len(right)) * STEP
        case (int(), int()) if operator in ("*", "**"):
            bits = left.bit_length() * abs(right) if operator == "**" else left.bit_length() + right.bit_length()
            return MOST + 1 if bits > MOST_BITS else 0
    return 0


def size_of_call(text: str, method: str, *arguments: Any) -> int:
    """At least the characters that a method of a text makes.

    >>> size_of_call("abab", "replace", "a", "xyz"), size_of_call("ab", "upper"), size_of_call("a", "center", 100)
    (6, 0, 100)
    """
    match method, arguments:
        case "replace", (str(old), str(new), *_):
            return text.count(old) * len(new)
        case "join", ([*parts],):
            return len(parts) * len(text)
        case _, (int(width), *_) if method in PADDING:
            return width
    return 0


def _size_of_replaced(text: Any, old: str, new: str, *_: Any, **__: Any) -> int:
    return size_of_call(str(text), "replace", str(old), str(new))


def _size_of_joined(parts: Any, between: str = "", **_: Any) -> int:
    return len(parts) * len(str(between)) if hasattr(parts, "__len__") else 0


def _size_of_indented(text: Any, width: int | str = 4, **_: Any) -> int:
    return (str(text).count("\n") + 1) * (width if isinstance(width, int) else len(width))


def _size_of_json(_: Any, indent: int | None = None) -> int:
    return MOST + 1 if indent and indent > WIDEST else 0


CHECKS: dict[str, Callable[..., int]] = {
    "replace": _size_of_replaced,
    "join": _size_of_joined,
    "indent": _size_of_indented,
    "tojson": _size_of_json,
}


def too_much() -> RunnerError:
    message = f"this makes more than {MOST} characters, where each step of a loop and each call counts as {STEP}"
    return RunnerError("template-size", message, hint="make less in one template: loops and texts have bounds")
