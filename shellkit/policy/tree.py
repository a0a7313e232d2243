"""A syntax tree of tree-sitter-bash -> segments. Called by `parse`; it never decides what is allowed.

The tree is not trusted: a node of an unknown kind, text between two nodes that is no blank, a word that is not
one word by `words.read_word`, a here-document whose end is not where a plain reading of lines puts it, each
becomes an OPAQUE segment. Disagreements of the grammar (0.25) with bash 5.2 that this catches, each found by running
both on random text: backticks in here-documents, substitutions in patterns (`${x%$(y)}`), several here-documents on
one line, `# a` in backticks, `\\ rm`, `{a`, `[[a`, `x=$ rm`, `[ a > b ]`, `$(> f)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

from . import grammar
from .base import Clarity, Segment, Word
from .heredoc import check_heredoc
from .variables import is_plain_assignment, is_plain_prefix
from .words import read_word, read_words

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Found", "Walk"]

_EVALUATES = "arithmetic evaluates variables, and with them commands"
_POSIX_DIFFERS = "this shell may read the text otherwise than bash"
_INDEX = "the index of an array runs what it contains"
_WORD = "a word is not understood"
_TEXT = "there is text that is not understood"


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
    """One walk over one tree. Iterative: the depth of the text must not be the depth of Python's stack.

    `children` and `parent` (its kind) belong to the node that is being visited; asking tree-sitter again for the
    first is slow, for the second linear in the depth of the tree.
    """

    def __init__(self, source: bytes, posix: bool) -> None:
        self.text = source.decode("latin-1")  # one character a byte: offsets of the tree are offsets of the text
        self.posix = posix
        self.writes: dict[int, tuple[str, ...]] = {}
        self.children: list[Node] = []
        self.parent = ""
        self.methods: dict[str, Callable[[Node], Iterator[Found]] | None] = {}

    def run(self, root: Node) -> Iterator[Found]:
        """Yield what the command does, outer things before inner ones, in the order of the text."""
        stack = [(root, "")]
        while stack:
            node, self.parent = stack.pop()
            if node.is_named or node.is_missing or node.is_error:
                kind = node.type
                self.children = children = node.children
                yield from self.visit(node, kind)
                if kind == "command_substitution" and self.text[self.start(node)] == "`":
                    continue  # parsed as a text of its own, see on_command_substitution
                stack.extend([(child, kind) for child in reversed(children)])

    def visit(self, node: Node, kind: str) -> Iterator[Found]:
        """Yield what `node` itself does; what it holds is visited later."""
        if node.is_missing or node.is_error:
            yield self.opaque(node, "the text does not parse")
            return
        if self.posix and kind in grammar.NOT_POSIX:
            yield self.opaque(node, _POSIX_DIFFERS)
        if kind not in grammar.TEXTS and (self.children or not self.parent):
            problem = self.gaps(node, kind)
            if problem:
                yield self.opaque(node, problem)
        if kind in grammar.LEAVES:
            if kind in {"word", "heredoc_content"} and grammar.HIDES.search(self.slice(node)):
                yield self.opaque(node, "an expansion stands where it is not understood")
        elif kind not in grammar.STRUCTURE and kind not in grammar.TRANSPARENT:
            if kind not in self.methods:
                self.methods[kind] = getattr(self, f"on_{kind}", None)
            method = self.methods[kind]
            if method:
                yield from method(node)
            else:
                yield self.opaque(node, f"{kind.replace('_', ' ')} is not looked into")

    # ------------------------------------------------------------------ commands and assignments

    def on_command(self, node: Node) -> Iterator[Found]:
        words: list[Word | None] = []
        writes = list(self.writes.get(node.id, ()))
        assigned = ""
        for child in self.children:
            kind = child.type
            if kind == "variable_assignment":
                name = self.slice(child).partition("=")[0]
                assigned = assigned or ("" if is_plain_prefix(name) else name)
            elif kind == "file_redirect":
                writes += self.written(child)
            elif kind not in {"herestring_redirect", "heredoc_redirect", "comment"}:
                words.append(self.word(child))
        why = f"{assigned}= before a command may change what it runs" if assigned else ""
        if None in words or not words:
            why = _WORD
        kept = tuple(word if word else Word("...", known=False) for word in words)
        yield Found(segment=self.segment(node, kept, why, tuple(writes)))

    def on_declaration_command(self, node: Node) -> Iterator[Found]:
        children = [child for child in self.children if child.type not in {"file_redirect", "comment"}]
        read = [self.word(child) or Word(_utf8(self.slice(child)), known=False) for child in children[1:]]
        words = (Word.of(children[0].type), *read)
        yield Found(segment=self.segment(node, words, "", self.writes.get(node.id, ())))

    on_unset_command = on_declaration_command

    def on_variable_assignment(self, node: Node) -> Iterator[Found]:
        target = re.match(r"([A-Za-z_]\w*)(?:\[(?:\d+|[A-Za-z]+)\])?\+?=", self.slice(node))
        value = node.child_by_field_name("value")
        parts = [node]
        if value is not None and value.type == "array":
            parts = [each for each in value.named_children if each.type != "comment"]
        if not target:
            yield self.opaque(node, _INDEX)
        elif not all(self.word(part) for part in parts):
            yield self.opaque(node, _WORD)
        if self.parent in {"command", "declaration_command"}:
            return
        if target and not is_plain_assignment(target[1]):
            yield self.opaque(node, f"{target[1]} may change what later commands run")
        elif target:
            yield Found(segment=self.segment(node, (), "", self.writes.get(node.id, ())))

    def on_subscript(self, node: Node) -> Iterator[Found]:
        if not re.fullmatch(r"\w+\[(?:[@*\d]+|[A-Za-z]+)\]", self.slice(node)):
            yield self.opaque(node, _INDEX)

    def on_function_definition(self, node: Node) -> Iterator[Found]:
        yield self.opaque(node, "a function changes what a later word means")

    # ------------------------------------------------------------------ redirections

    def on_redirected_statement(self, node: Node) -> Iterator[Found]:
        """Give the writing redirections to the command that they belong to: the last of a list or pipeline."""
        writes: list[str] = []
        pending = [child for child in self.children if child.type.endswith("_redirect")]
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
        text = self.slice(node)
        before = re.search(r"\{\w+\}\Z", self.text[max(0, node.start_byte - 64) : self.start(node)])
        targets = node.children_by_field_name("destination")
        if before or not re.match(r"\d*[<>&]", text):
            yield self.opaque(node, "a redirection assigns a variable")
        elif len(targets) != (0 if re.search(r"[<>]&-", text) else 1):
            yield self.opaque(node, "a redirection is not understood")
        elif self.posix and "&>" in text:
            yield self.opaque(node, _POSIX_DIFFERS)
        if self.parent not in {"command", "redirected_statement", "heredoc_redirect"}:
            yield Found(segment=self.segment(node, (), "", tuple(self.written(node))))

    def on_herestring_redirect(self, node: Node) -> Iterator[Found]:
        if self.word(self.children[-1]) is None:
            yield self.opaque(node, _WORD)

    def on_heredoc_redirect(self, node: Node) -> Iterator[Found]:
        problem = check_heredoc(self.text, node)
        if problem:
            yield self.opaque(node, problem)
        parts = {child.type: self.slice(child) for child in self.children}
        if "heredoc_body" in parts and not re.search(r"['\"\\]", parts.get("heredoc_start", "")):
            for inner in re.findall(r"`((?:[^`\\]|\\.)*)`", parts["heredoc_body"], re.DOTALL):
                yield Found(segment=self.segment(node), script=_unescaped(inner))

    def written(self, node: Node) -> list[str]:
        """Return the target of a redirection that writes a file or opens a connection, else nothing."""
        children = node.children
        target = self.slice(children[-1])
        operator = next((child.type for child in children if not child.is_named), "")
        word = self.word(children[-1]) if children[-1].is_named else None
        if operator in {"<&-", ">&-"} or (operator in {"<&", ">&"} and re.fullmatch(r"\d+-?|-", target)):
            return []
        if operator == "<":
            # bash opens a connection for /dev/tcp/HOST/PORT, and after expansion too (bash(1) "REDIRECTION")
            local = word and (word.known or word.operand or word.text.startswith("<("))
            return [] if local and not re.match(r"/+dev/+(?:tcp|udp)", target) else [f"the network ({_utf8(target)})"]
        if word and word.known and word.text == "/dev/null" and operator != "<>":
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
        if "#" in inner:
            yield self.opaque(node, "a comment inside backticks is not understood")
        yield Found(segment=self.segment(node), script=_unescaped(inner))

    def on_arithmetic_expansion(self, node: Node) -> Iterator[Found]:
        if not grammar.ARITHMETIC.match(self.slice(node).removeprefix("$")):
            yield self.opaque(node, _EVALUATES)

    def on_compound_statement(self, node: Node) -> Iterator[Found]:
        text = self.slice(node)
        if text.startswith("((") and (self.posix or not grammar.ARITHMETIC.match(text)):
            yield self.opaque(node, _EVALUATES)
            if self.posix:
                yield Found(segment=self.segment(node), script=_utf8(text[2:-2]))

    def on_c_style_for_statement(self, node: Node) -> Iterator[Found]:
        yield self.opaque(node, _EVALUATES)

    def on_expansion(self, node: Node) -> Iterator[Found]:
        """Read `${...}` without what it holds: a name, one operator, and an operand without quotes or braces.

        Quotes are left out for a reason: in `"${x:-'}"` the shell takes the quote literally, the grammar does not.
        """
        start, text = self.start(node), self.slice(node)
        rest, position = "", 0
        holes = {at: end for child in self.children for at, (end, _) in self.holes(child, start).items()}
        for at, end in sorted(holes.items()):
            rest, position = rest + text[position:at] + "x", end
        rest += text[position:]
        if not grammar.EXPANSION.match(rest):
            yield self.opaque(node, "an expansion assigns, evaluates or hides something")
            for inner in re.findall(r"\$\(([^()]*)\)|`([^`]*)`", rest):
                yield Found(segment=self.segment(node), script=_utf8(inner[0] or inner[1]))

    def on_test_command(self, node: Node) -> Iterator[Found]:
        """Read the test once more by its blanks: in `[ a > b ]` the shell sees a redirection, the grammar does not."""
        start, text = self.start(node), self.slice(node)
        if not re.match(r"\[\[?[ \t]", text):
            yield self.opaque(node, "a test is not understood")
            return
        double = text.startswith("[[")
        words = list(read_words(text, self.holes(node, start), " \t\n" if double else " \t"))
        operators = grammar.TEST_OPERATORS if double else {"!"}
        understood = words[-1][0] == ("]]" if double else "]") and len(words) > 2
        for position, (part, word) in enumerate(words):
            pattern = double and position and words[position - 1][0] == "=~" and grammar.REGEX.match(part)
            understood = understood and bool(word or part in operators or pattern)
        evaluating = {"-v", "-R", *(("-eq", "-ne", "-lt", "-le", "-gt", "-ge") if double else ())}
        if not understood or (self.posix and double):
            yield self.opaque(node, "a test is not understood")
        elif evaluating & {part for part, _ in words}:
            yield self.opaque(node, "a test evaluates the value of a variable")
        else:
            yield Found(segment=self.segment(node))

    def on_for_statement(self, node: Node) -> Iterator[Found]:
        variable = node.child_by_field_name("variable")
        name = self.slice(variable) if variable else ""
        if not is_plain_assignment(name) or self.children[0].type == "select":
            yield self.opaque(node, f"the loop assigns {name}, which may change what later commands run")
        for value in node.children_by_field_name("value"):
            if self.word(value) is None:
                yield self.opaque(value, _WORD)

    def on_case_statement(self, node: Node) -> Iterator[Found]:
        value = node.child_by_field_name("value")
        items = [child for child in self.children if child.type == "case_item"]
        patterns = [pattern for item in items for pattern in item.children_by_field_name("value")]
        if any(self.word(each) is None for each in (value, *patterns) if each is not None):
            yield self.opaque(node, "a pattern is not understood")

    def on_comment(self, node: Node) -> Iterator[Found]:
        """Check that the shell starts a comment here too: after a blank or an operator."""
        start = node.start_byte
        while self.text.startswith("\\\n", start - 2) and start > 1:
            start -= 2
        before = self.text[start - 1 : start]
        if self.slice(node)[0] != "#" or "\n" in self.slice(node) or (before and before not in " \t\n;|&("):
            yield self.opaque(node, "a comment is not understood")

    # ------------------------------------------------------------------ reading the source

    def start(self, node: Node) -> int:
        """Return where the node's text starts; tokens of the grammar may take blanks before them along."""
        start: int = node.start_byte
        while self.text[start : start + 1] in {" ", "\t", "\n"} and start < node.end_byte:
            start += 1
        return start

    def slice(self, node: Node) -> str:
        return self.text[self.start(node) : node.end_byte]

    def word(self, node: Node) -> Word | None:
        start = self.start(node)
        holes = self.holes(node, start) if node.child_count else {}
        return read_word(self.text[start : node.end_byte], holes)

    def holes(self, node: Node, start: int) -> dict[int, tuple[int, bool]]:
        """Return the expansions in `node`: offset from `start` -> (end, whether it is a process substitution)."""
        holes: dict[int, tuple[int, bool]] = {}
        pending = [node]
        while pending:
            each = pending.pop()
            kind = each.type
            if kind in grammar.EXPANSIONS and grammar.OPENS.match(self.slice(each)):
                holes[self.start(each) - start] = (each.end_byte - start, kind == "process_substitution")
            elif each.child_count:
                pending.extend(each.children)
        return holes

    def gaps(self, node: Node, kind: str) -> str:
        """Return why the text between the node's children is not what the shell sees between words, or ""."""
        # A program starts at its first token; what stands before that is checked too.
        previous, end = (node.start_byte, node.end_byte) if self.parent else (0, len(self.text))
        before = ""
        for child in self.children:
            first, child_kind = self.start(child), child.type
            gap = self.text[previous:first]
            if child_kind in grammar.KEYWORDS and not self.bounded(first, child.end_byte):
                return "a reserved word is not understood"
            if gap != " ":
                blank = gap.replace("\\\n", "")
                if blank.strip(" \t\n") or ("\\\n" in gap and not blank):
                    return _TEXT
                if kind == "command" and before and "\n" in blank:
                    return "a line ends inside a command"
                if kind == "command" and before and not gap and "redirect" not in child_kind + before:
                    return "two words stand without a blank between them"
            previous, before = max(previous, child.end_byte), child_kind
        return _TEXT if self.text[previous:end].replace("\\\n", "").strip(" \t\n") else ""

    def bounded(self, start: int, end: int) -> bool:
        """Return whether blanks or operators stand around a reserved word; else it is part of a word (`{a`, `}b`)."""
        before, after = self.text[start - 1 : start], self.text[end : end + 1]
        return (not start or before in " \t\n;|&()") and after in " \t\n;|&()<>"

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


def _unescaped(text: str) -> str:
    return re.sub(r"\\([`\\$\"])", r"\1", _utf8(text))


def _utf8(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "replace")
