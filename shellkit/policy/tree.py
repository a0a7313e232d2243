"""A syntax tree of tree-sitter-bash -> segments. Called by `parse`; it never decides what is allowed.

The tree is not trusted: a node of an unknown kind, text between two nodes that is no blank, a word that is not
one word by `words.read_word`, a here-document whose end is not where a plain reading of lines puts it, each
becomes an OPAQUE segment. Known disagreements of the grammar (0.25) with bash 5.2 that this catches: backticks in
here-documents, substitutions inside patterns (`${x%$(y)}`), several here-documents on one line, nested backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from .base import Clarity, Segment, Word
from .heredoc import check_heredoc
from .variables import is_plain_assignment, is_plain_prefix
from .words import read_word, read_words

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Found", "Walk"]

# Kinds that only hold others: what they hold is looked at, they themselves do nothing.
_STRUCTURE = frozenset(
    "program list pipeline subshell do_group if_statement elif_clause else_clause while_statement case_item "
    "negated_command process_substitution string concatenation array variable_assignments translated_string "
    "command_name brace_expression".split()
)
_LEAVES = frozenset(
    "word number raw_string ansi_c_string string_content variable_name special_variable_name file_descriptor "
    "simple_expansion heredoc_start heredoc_content heredoc_end test_operator".split()
)
_NOT_POSIX = frozenset(
    "ansi_c_string translated_string process_substitution c_style_for_statement herestring_redirect array "
    "brace_expression extglob_pattern".split()
)
_EXPANSIONS = frozenset(
    "command_substitution process_substitution expansion simple_expansion arithmetic_expansion".split()
)
_ARITHMETIC = re.compile(r"[\d\s+\-*/%()<>=!&|^~?:,]*\Z")
_EXPANSION = re.compile(
    r"\$\{(?:#?(?:[A-Za-z_]\w*(?:\[[@*\d]+\])?|[@*#?$!\d-])"
    r"|(?:[A-Za-z_]\w*(?:\[[@*\d]+\])?|[@*\d])(?:(?::?[-+?]|%%?|##?|//?|\^\^?|,,?)[^`'\"\\{}$\n]*|:[ ]?\d+(?::\d+)?))\}\Z",
    re.DOTALL,
)
_TEST_OPERATORS = frozenset("[[ ]] && || ! ( ) < >".split())
_REGEX = re.compile(r"(?:[\w.^*+?()|\[\]{}:,/=@%-]|\\.|\$\Z)+\Z")
_KEYWORDS = frozenset(
    "if then elif else fi do done case esac in for while until select function { } ! [[ ]] time coproc".split()
)
_OPENS = re.compile(r"\$(?:(?:[A-Za-z_]\w*|\d+|[@*#?$!-])\Z|[({\[])|`|[<>]\(")
_HIDES = re.compile(r"(?:\A|[^\\])(?:\\\\)*(?:`|\$[({\[]|[<>]\()")


@attrs.frozen(kw_only=True)
class Found:
    """What the walk found: a segment as far as the tree tells, or a text that must be parsed by itself.

    Attributes:
        segment: the segment; `words` is set for a simple command.
        script: shell text to be parsed in place of the segment (the inside of backticks), or None.
    """

    segment: Segment
    script: str | None = None


class Walk:
    """One walk over one tree. Iterative: the depth of the text must not be the depth of Python's stack."""

    def __init__(self, source: bytes, posix: bool) -> None:
        self.source = source
        self.text = source.decode("latin-1")  # one character a byte: offsets of the tree are offsets of the text
        self.posix = posix
        self.writes: dict[int, tuple[str, ...]] = {}

    def run(self, root: Node) -> Iterator[Found]:
        """Yield what the command does, outer things before inner ones, in the order of the text."""
        stack = [root]
        while stack:
            node = stack.pop()
            yield from self.visit(node)
            stack.extend(reversed(self.inside(node)))

    # ------------------------------------------------------------------ what a node is

    def visit(self, node: Node) -> Iterator[Found]:
        """Yield what `node` itself does; what it holds is visited later."""
        kind = node.type
        if node.is_missing or kind == "ERROR":
            yield self.opaque(node, "the text does not parse")
            return
        if not node.is_named:
            return
        if self.posix and kind in _NOT_POSIX:
            yield self.opaque(node, "this shell may read the text otherwise than bash")
        problem = self.gaps(node)
        if problem:
            yield self.opaque(node, problem)
        method = getattr(self, f"on_{kind}", None)
        if method:
            yield from method(node)
        elif kind in _LEAVES:
            if kind in {"word", "heredoc_content"} and _HIDES.search(self.slice(node)):
                yield self.opaque(node, "an expansion stands where it is not understood")
        elif kind not in _STRUCTURE:
            yield self.opaque(node, f"{kind.replace('_', ' ')} is not looked into")

    def inside(self, node: Node) -> list[Node]:
        if node.type == "command_substitution" and self.text[self.start(node)] == "`":
            return []  # parsed as a text of its own, see on_command_substitution
        return node.children

    def on_command(self, node: Node) -> Iterator[Found]:
        words: list[Word | None] = []
        writes = list(self.writes.get(node.id, ()))
        assigned = ""
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment":
                name = self.slice(child).partition("=")[0]
                assigned = assigned or ("" if is_plain_prefix(name) else name)
            elif kind == "file_redirect":
                writes += self.written(child)
            elif kind == "command_name" or node.field_name_for_child(node.children.index(child)) == "argument":
                words.append(self.word(child))
        why = f"{assigned}= before a command may change what it runs" if assigned else ""
        if None in words or not words:
            why = "a word is not understood"
        kept = tuple(word if word else Word("...", known=False) for word in words)
        yield Found(segment=self.segment(node, kept, why, tuple(writes)))

    def on_declaration_command(self, node: Node) -> Iterator[Found]:
        children = [child for child in node.children if child.type not in {"file_redirect", "comment"}]
        read = [Word.of(children[0].type), *(self.word(child) or _rough(self.slice(child)) for child in children[1:])]
        yield Found(segment=self.segment(node, tuple(read), "", self.writes.get(node.id, ())))

    on_unset_command = on_declaration_command

    def on_variable_assignment(self, node: Node) -> Iterator[Found]:
        parent = node.parent
        target = re.match(r"([A-Za-z_]\w*)(?:\[(?:\d+|[A-Za-z]+)\])?\+?=", self.slice(node))
        value = node.child_by_field_name("value")
        if not target:
            yield self.opaque(node, "the index of an array runs what it contains")
        elif value is not None and value.type == "array":
            if not all(self.word(each) for each in value.named_children if each.type != "comment"):
                yield self.opaque(node, "the value is not understood")
        elif self.word(node) is None:
            yield self.opaque(node, "the value is not understood")
        if parent is not None and parent.type in {"command", "declaration_command"}:
            return
        if target and not is_plain_assignment(target[1]):
            yield self.opaque(node, f"{target[1]} may change what later commands run")
        elif target:
            yield Found(segment=self.segment(node, (), "", self.writes.get(node.id, ())))

    def on_subscript(self, node: Node) -> Iterator[Found]:
        if not re.fullmatch(r"\w+\[(?:[@*\d]+|[A-Za-z]+)\]", self.slice(node)):
            yield self.opaque(node, "the index of an array runs what it contains")

    # ------------------------------------------------------------------ redirections

    def on_redirected_statement(self, node: Node) -> Iterator[Found]:
        """Give the writing redirections to the command that they belong to: the last of a list or pipeline."""
        writes: list[str] = []
        pending = [child for child in node.children if child.type.endswith("_redirect")]
        for child in pending:
            pending.extend(each for each in child.children if each.type == "file_redirect")
            if child.type == "file_redirect":
                writes += self.written(child)
        last = node.child_by_field_name("body")
        while last is not None and last.type in {"pipeline", "list"} and last.children:
            last = last.children[-1]
        if last is not None and last.type in {"command", "declaration_command", "variable_assignment"}:
            self.writes[last.id] = (*self.writes.get(last.id, ()), *writes)
        else:
            yield Found(segment=self.segment(node, (), "", tuple(writes)))

    def on_file_redirect(self, node: Node) -> Iterator[Found]:
        descriptor = node.child_by_field_name("descriptor")
        before = re.search(r"\{\w+\}\Z", self.text[max(0, node.start_byte - 64) : self.start(node)])
        if before or (descriptor and not self.slice(descriptor).isdigit()):
            yield self.opaque(node, "a redirection assigns a variable")
        targets = node.children_by_field_name("destination")
        if len(targets) != (0 if re.search(r"[<>]&-", self.slice(node)) else 1):
            yield self.opaque(node, "a redirection is not understood")
        parent = node.parent
        if parent is None or parent.type not in {"command", "redirected_statement", "heredoc_redirect"}:
            yield Found(segment=self.segment(node, (), "", tuple(self.written(node))))
        if self.posix and "&>" in self.slice(node):
            yield self.opaque(node, "this shell may read the text otherwise than bash")

    def on_herestring_redirect(self, node: Node) -> Iterator[Found]:
        if self.word(node.children[-1]) is None:
            yield self.opaque(node, "a word is not understood")

    def on_heredoc_redirect(self, node: Node) -> Iterator[Found]:
        problem = check_heredoc(self.text, node)
        if problem:
            yield self.opaque(node, problem)
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        if body is not None and start is not None and not re.search(r"['\"\\]", self.slice(start)):
            for inner in re.findall(r"`((?:[^`\\]|\\.)*)`", self.slice(body), re.DOTALL):
                yield Found(segment=self.segment(node), script=_unescaped(inner))

    def on_heredoc_body(self, _node: Node) -> Iterator[Found]:
        return iter(())  # checked as a whole by on_heredoc_redirect

    def written(self, node: Node) -> list[str]:
        """Return the target of a redirection that writes a file or opens a connection, else nothing."""
        target = self.slice(node.children[-1])
        operator = next((c.type for c in node.children if not c.is_named), "")
        word = self.word(node.children[-1]) if node.children[-1].is_named else None
        if operator in {"<&", ">&"} and re.fullmatch(r"\d+-?|-", target):
            return []
        if operator == "<" and word and word.known and not re.match(r"/+dev/+(tcp|udp)", word.text):
            return []
        if operator == "<" and word and not word.known and (word.operand or word.text.startswith("<(")):
            return []
        if operator in {"<&-", ">&-"} or (word and word.known and word.text == "/dev/null" and operator != "<>"):
            return []
        return [word.text if word else _utf8(target)]

    # ------------------------------------------------------------------ expansions, tests, loops

    def on_command_substitution(self, node: Node) -> Iterator[Found]:
        text = self.slice(node)
        if text.startswith("$(("):
            yield self.opaque(node, "`$((` may be arithmetic or a command")
        if not text.startswith("`"):
            return
        inner = text[1:-1]
        if "`" in inner or "\\" in inner:
            yield self.opaque(node, "backticks inside backticks are not understood")
        yield Found(segment=self.segment(node), script=_unescaped(inner))

    def on_arithmetic_expansion(self, node: Node) -> Iterator[Found]:
        if not _ARITHMETIC.match(self.slice(node).removeprefix("$")):
            yield self.opaque(node, "arithmetic evaluates variables, and with them commands")

    def on_compound_statement(self, node: Node) -> Iterator[Found]:
        text = self.slice(node)
        if text.startswith("((") and (self.posix or not _ARITHMETIC.match(text)):
            yield self.opaque(node, "arithmetic evaluates variables, and with them commands")
            if self.posix:
                yield Found(segment=self.segment(node), script=_utf8(text[2:-2]))

    def on_expansion(self, node: Node) -> Iterator[Found]:
        """Read `${...}` without what it holds: a name, one operator, and an operand without quotes or braces.

        Quotes are left out for a reason: in `"${x:-'}"` the shell takes the quote literally, the grammar does not.
        """
        start, text = self.start(node), self.slice(node)
        rest, position = "", 0
        holes = {at: end for child in node.children for at, (end, _) in self.holes(child, start).items()}
        for at, end in sorted(holes.items()):
            rest, position = rest + text[position:at] + "x", end
        rest += text[position:]
        if not _EXPANSION.match(rest):
            yield self.opaque(node, "an expansion assigns, evaluates or hides something")
            for inner in re.findall(r"\$\(([^()]*)\)|`([^`]*)`", rest):
                yield Found(segment=self.segment(node), script=_utf8(inner[0] or inner[1]))

    def on_test_command(self, node: Node) -> Iterator[Found]:
        """Read the test once more by its blanks: in `[ a > b ]` the shell sees a redirection, the grammar does not."""
        start = self.start(node)
        double = self.slice(node).startswith("[[")
        blanks = " \t\n" if double else " \t"
        words = list(read_words(self.slice(node), self.holes(node, start), blanks))
        operators = _TEST_OPERATORS if double else frozenset({"!"})
        understood = words[0][0] in {"[", "[["} and words[-1][0] == ("]]" if double else "]") and len(words) > 2
        for position, (text, word) in enumerate(words):
            pattern = double and position and words[position - 1][0] == "=~"
            understood = understood and bool(word or text in operators or (pattern and _REGEX.match(text)))
        evaluates = {text for text, _ in words} & (
            {"-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"} if double else {"-v", "-R"}
        )
        if not understood or (self.posix and double):
            yield self.opaque(node, "a test is not understood")
        elif evaluates:
            yield self.opaque(node, "a test evaluates the value of a variable")
        else:
            yield Found(segment=self.segment(node))

    def nothing(self, _node: Node) -> Iterator[Found]:
        return iter(())  # read by on_test_command, on_compound_statement or on_arithmetic_expansion

    on_regex = on_binary_expression = on_unary_expression = on_parenthesized_expression = nothing
    on_ternary_expression = on_postfix_expression = on_extglob_pattern = nothing

    def on_for_statement(self, node: Node) -> Iterator[Found]:
        variable = node.child_by_field_name("variable")
        name = self.slice(variable) if variable else ""
        if not is_plain_assignment(name) or self.text.startswith("select", self.start(node)):
            yield self.opaque(node, f"the loop assigns {name}, which may change what later commands run")
        for value in node.children_by_field_name("value"):
            if self.word(value) is None:
                yield self.opaque(value, "a word is not understood")

    def on_case_statement(self, node: Node) -> Iterator[Found]:
        value = node.child_by_field_name("value")
        patterns = [p for item in node.named_children for p in item.children_by_field_name("value")]
        if any(self.word(each) is None for each in (value, *patterns) if each is not None):
            yield self.opaque(node, "a pattern is not understood")

    def on_c_style_for_statement(self, node: Node) -> Iterator[Found]:
        yield self.opaque(node, "arithmetic evaluates variables, and with them commands")

    def on_function_definition(self, node: Node) -> Iterator[Found]:
        yield self.opaque(node, "a function changes what a later word means")

    def on_comment(self, node: Node) -> Iterator[Found]:
        """Check that the shell starts a comment here too: after a blank or an operator, outside of backticks."""
        before = re.sub(r"(?:\\\n)+\Z", "", self.text[: node.start_byte])[-1:]
        if self.slice(node)[0] != "#" or "\n" in self.slice(node) or (before and before not in " \t\n;|&()"):
            yield self.opaque(node, "a comment is not understood")

    # ------------------------------------------------------------------ reading the source

    def start(self, node: Node) -> int:
        """Return where the node's text starts; tokens of the grammar may take blanks before them along."""
        start = node.start_byte
        while start < node.end_byte and self.text[start] in " \t\n":
            start += 1
        return start

    def slice(self, node: Node) -> str:
        return self.text[self.start(node) : node.end_byte]

    def word(self, node: Node) -> Word | None:
        start = self.start(node)
        return read_word(self.text[start : node.end_byte], self.holes(node, start))

    def holes(self, node: Node, start: int) -> dict[int, tuple[int, bool]]:
        """Return the expansions in `node`: offset from `start` -> (end, whether it is a process substitution)."""
        holes: dict[int, tuple[int, bool]] = {}
        pending = [node]
        while pending:
            each = pending.pop()
            if each.type in _EXPANSIONS and _OPENS.match(self.slice(each)):
                holes[self.start(each) - start] = (each.end_byte - start, each.type == "process_substitution")
            else:
                pending.extend(each.children)
        return holes

    def gaps(self, node: Node) -> str:
        """Return why the text between the node's children is not what the shell sees between words, or ""."""
        children = node.children
        whole = node.parent is None  # a program starts at its first token; what stands before is checked too
        previous, end = (0, len(self.text)) if whole else (node.start_byte, node.end_byte)
        strict = node.type == "command"
        if node.type in {
            "string",
            "heredoc_body",
            "expansion",
            "translated_string",
            "concatenation",
            "brace_expression",
        }:
            return ""  # these are text; their words are read by `read_word`
        for position, child in enumerate(children):
            first = self.start(child)
            gap = self.text[previous:first]
            if child.type in _KEYWORDS and not self.bounded(first, child.end_byte):
                return "a reserved word is not understood"
            blank = gap.replace("\\\n", "")
            if blank.strip(" \t\n") or ("\\\n" in gap and not blank):
                return "there is text that is not understood"
            if strict and position and "\n" in blank:
                return "a line ends inside a command"
            if strict and position and not gap and "redirect" not in child.type + children[position - 1].type:
                return "two words stand without a blank between them"
            previous = max(previous, child.end_byte)
        rest = self.text[previous:end].replace("\\\n", "").strip(" \t\n")
        return "there is text that is not understood" if rest and (children or whole) else ""

    def bounded(self, start: int, end: int) -> bool:
        """Return whether blanks or operators stand around a reserved word; else it is part of a word (`{a`, `}b`)."""
        return (not start or self.text[start - 1] in " \t\n;|&()") and self.text[end : end + 1] in " \t\n;|&()<>"

    def segment(self, node: Node, words: tuple[Word, ...] = (), why: str = "", writes: tuple[str, ...] = ()) -> Segment:
        row, column = node.start_point
        line_start = node.start_byte - column
        return Segment(
            text=_utf8(self.slice(node)),
            words=words,
            line=row + 1,
            column=len(_utf8(self.text[line_start : node.start_byte])) + 1,
            clarity=Clarity.OPAQUE if why else Clarity.CLEAR,
            why=why,
            writes=writes,
        )

    def opaque(self, node: Node, why: str) -> Found:
        return Found(segment=self.segment(node, why=why))


def _rough(text: str) -> Word:
    return Word(_utf8(text), known=False)


def _unescaped(text: str) -> str:
    return re.sub(r"\\([`\\$\"])", r"\1", _utf8(text))


def _utf8(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "replace")
