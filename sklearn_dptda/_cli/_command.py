"""Commands, and their options: the parameters of the estimators that they run.

Names, defaults and help of these options come from signatures and docstrings, and the estimators
check the values. Their messages name parameters, which ``in_options`` translates to options.
"""

import argparse
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, get_args, get_origin

# Parameters that are not for the command line: the commands set them themselves, or they are
# Python objects.
_HIDDEN = frozenset(
    {"accountant", "random_state", "n_jobs", "groups", "unit", "sensitivity", "upper", "landmarks"}
)
# A name in a message of an estimator, and the value that it may have there. What belongs to a path
# or to a longer name is not matched.
_NAMED = re.compile(
    r"The '(?P<rule>\w+)' parameter of \w+"
    r"|(?<![\w./\\-])(?P<name>[A-Za-z]\w*)(?:=(?P<value>'[\w-]+'|\w[\w.-]*\w|\w))?(?![\w/\\]|\.\w)"
)

# How argparse takes options with several values, which add up if the option is given twice, and
# options without a value.
SEVERAL: dict[str, Any] = {"nargs": "+", "action": "extend"}
SWITCH: dict[str, Any] = {"action": "store_true"}


class Option(NamedTuple):
    """The option that sets a parameter, and how its values are given to ``argparse``."""

    flag: str
    takes: dict[str, Any]
    is_box: bool = False

    @classmethod
    def of(cls, parameter: inspect.Parameter, flag: str, text: str) -> "Option":
        """Return the option of a parameter, which the signature describes."""
        kind = parameter.annotation
        members = [kind] if get_origin(kind) is Literal else [*get_args(kind), kind]
        items = next((get_args(m)[0] for m in members if get_origin(m) is Sequence), None)
        takes = {"help": text, "required": parameter.default is inspect.Parameter.empty}
        if bool in members:
            return cls(flag, takes | SWITCH)
        if str in members or any(get_origin(member) is Literal for member in members):
            return cls(flag, takes | {"type": _word_or_number, "metavar": "VALUE"})
        takes["metavar"] = "NUMBER"
        takes["type"] = int if int in (*members, items) else float
        if items is None:
            return cls(flag, takes)
        if items in (int, float):
            return cls(flag, takes | SEVERAL)
        # The other arrays are boxes.
        return cls(flag, takes | {"nargs": "+", "metavar": "LOW HIGH"}, is_box=True)

    def value(self, given: Any) -> Any:
        """Return the value of the parameter for what was given on the command line."""
        if self.is_box:
            return box_of(given, self.flag)
        # One number applies to all columns or dimensions.
        return given[0] if isinstance(given, list) and len(given) == 1 else given


def _word_or_number(text):
    if text == "none":
        return None
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def box_of(numbers, flag):
    """Turn LOW HIGH, or LOW HIGH for each coordinate, into a pair (low, high)."""
    if len(numbers) % 2:
        raise ValueError(
            f"{flag} takes 2 numbers, or 2 numbers per coordinate; got {len(numbers)}."
        )
    return tuple(numbers) if len(numbers) == 2 else (numbers[::2], numbers[1::2])


def _texts(documented, flags):
    """Return the type, default and first paragraph of each parameter in a numpydoc docstring."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n--|\Z)", inspect.getdoc(documented) or "", re.M | re.S
    )
    # Parts alternate: the name of a parameter, its type and default, and its description.
    _, *parts = re.split(r"^(\w+) : (.*)$", section[1] if section else "", flags=re.M)
    for name, kind, description in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        text = " ".join(re.split(r"\n\s*\n", description.strip())[0].split())
        if name == "epsilon":
            # Exact releases are for Python only.
            text = text.partition(" ``inf``")[0]
        text = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", f"{text} ({kind})")
        text = re.sub(r"``([^`]*)``", lambda match: flags.get(match[1], match[1]), text)
        yield name, text.replace("%", "%%")


class Command:
    """A command: its arguments, and what it does with them. Its docstring is its help.

    ``arguments`` has what no estimator knows, or knows otherwise: by the names of each argument,
    how ``argparse`` takes it. ``kinds`` are the estimators or functions whose parameters are
    options, too, except for those in ``hidden``. ``names`` has the options that are named
    otherwise, and ``required`` those that have a default in Python only.
    """

    name: ClassVar[str]
    arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    kinds: ClassVar[Sequence[Callable[..., Any]]] = ()
    hidden: ClassVar[frozenset[str]] = frozenset()
    names: ClassVar[Mapping[str, str]] = {}
    required: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args

    def run(self) -> None:
        """Do what the command does."""
        raise NotImplementedError

    @classmethod
    def help(cls) -> tuple[str, str]:
        """Return the texts before and after the options in the help."""
        description, example, rest = inspect.cleandoc(cls.__doc__ or "").partition("example:")
        return description.strip(), f"{example}{rest}"

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Add the arguments to the parser of the command."""
        for names, takes in cls.arguments.items():
            parser.add_argument(*names.split(), **takes)
        for name, option in cls.options().items():
            takes = option.takes | ({"required": True} if name in cls.required else {})
            parser.add_argument(option.flag, dest=name, default=argparse.SUPPRESS, **takes)

    @classmethod
    def flags(cls) -> dict[str, str]:
        """Return the options by the names of their parameters."""
        every = (name for kind in cls.kinds for name in inspect.signature(kind).parameters)
        shown = (name for name in every if name not in _HIDDEN | cls.hidden)
        return {name: f"--{cls.names.get(name, name).replace('_', '-')}" for name in shown}

    @classmethod
    def options(cls) -> dict[str, Option]:
        """Return the options that set parameters, by the names of these."""
        flags, found = cls.flags(), dict[str, Option]()
        for kind in cls.kinds:
            texts = dict(_texts(kind, flags))
            for name, parameter in inspect.signature(kind).parameters.items():
                is_new = name not in found and flags.get(name) not in cls.arguments
                if name in flags and is_new:
                    found[name] = Option.of(parameter, flags[name], texts.get(name, ""))
        return found

    def stated(self, arguments: Iterable[str]) -> dict[str, Any]:
        """Return the values of some options that are no parameters, by their names."""
        flags = (names.split()[-1] for names in arguments if names[0] == "-")
        found = (flag.lstrip("-").replace("-", "_") for flag in flags)
        return {name: getattr(self.args, name) for name in found if name in self.args}

    def given(self, kind: Callable[..., Any]) -> dict[str, Any]:
        """Return the parameters of an estimator or a function that were given as options."""
        known = inspect.signature(kind).parameters
        options = {name: option for name, option in self.options().items() if name in self.args}
        return {n: o.value(getattr(self.args, n)) for n, o in options.items() if n in known}


def in_options(message: str, flags: Mapping[str, str]) -> str:
    """Translate the names of parameters in a message of an estimator to options.

    Many names are words as well. A word stands for a parameter if it is the first one, if it
    contains an underscore or a capital letter, or if a text or True is assigned to it.
    """

    def translated(match: re.Match[str]) -> str:
        name, value = match["rule"] or match["name"], match["value"] or ""
        is_first = match.start() == 0 and not value
        is_name = match["rule"] or re.search("[_A-Z]", name) or value[:1] == "'" or value == "True"
        if name not in flags or not (is_first or is_name):
            return match[0]
        return " ".join([flags[name], value.strip("'")]).removesuffix(" True").rstrip()

    return _NAMED.sub(translated, message)


def at_least_one(text):
    """Turn an argument into a positive integer."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1; got {text!r}")
    return int(text)
