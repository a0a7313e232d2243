# ruff: noqa: SIM905 - a long list of words is read more easily as text
"""What `tree` knows about tree-sitter-bash 0.25: kinds of nodes, and what the text of some must look like."""

from __future__ import annotations

import re

__all__ = [
    "ARITHMETIC",
    "EXPANSION",
    "EXPANSIONS",
    "HIDES",
    "KEYWORDS",
    "LEAVES",
    "NOT_POSIX",
    "OPENS",
    "REGEX",
    "STRUCTURE",
    "TEST_OPERATORS",
    "TEXTS",
    "TRANSPARENT",
]

# Kinds that only hold others: what they hold is looked at, they themselves do nothing.
STRUCTURE = frozenset(
    "program list pipeline subshell do_group if_statement elif_clause else_clause while_statement case_item "
    "negated_command process_substitution string concatenation array variable_assignments translated_string "
    "command_name brace_expression".split()
)
# Kinds that hold nothing.
LEAVES = frozenset(
    "word number raw_string ansi_c_string string_content variable_name special_variable_name file_descriptor "
    "simple_expansion heredoc_start heredoc_content heredoc_end test_operator".split()
)
# Kinds whose text is read as a whole, by the kind that holds them.
TRANSPARENT = frozenset(
    "regex binary_expression unary_expression parenthesized_expression ternary_expression postfix_expression "
    "extglob_pattern heredoc_body".split()
)
# Kinds whose children lie in text, not among blanks; their words are read by `words`.
TEXTS = frozenset("string heredoc_body expansion translated_string concatenation brace_expression".split())
# What a POSIX shell may read as something else: dash ends `$'a\'` at the second quote.
NOT_POSIX = frozenset(
    "ansi_c_string translated_string process_substitution c_style_for_statement herestring_redirect array "
    "brace_expression extglob_pattern".split()
)
EXPANSIONS = frozenset(
    "command_substitution process_substitution expansion simple_expansion arithmetic_expansion".split()
)
KEYWORDS = frozenset(
    "if then elif else fi do done case esac in for while until select function { } ! [[ ]] time coproc".split()
)
TEST_OPERATORS = frozenset("[[ ]] && || ! ( ) < >".split())

# The grammar lets blanks and names stand after `$` that the shell does not take (`$ x`).
OPENS = re.compile(r"\$(?:(?:[A-Za-z_]\w*|\d+|[@*#?$!-])\Z|[({\[])|`|[<>]\(")
# Numbers and operators only: a variable in arithmetic is evaluated, and runs what its value holds (`a[$(cmd)]`).
ARITHMETIC = re.compile(r"[\d\s+\-*/%()<>=!&|^~?:,]*\Z")
REGEX = re.compile(r"(?:[\w.^*+?()|\[\]{}:,/=@%-]|\\.|\$\Z)+\Z")
HIDES = re.compile(r"(?:\A|[^\\])(?:\\\\)*(?:`|\$[({\[]|[<>]\()")
# `${name}`, `${#name}`, `${name:1:2}`, `${name<operator>text}` with text that holds no quote, brace or backslash.
_NAME = r"[A-Za-z_]\w*(?:\[[@*\d]+\])?"
EXPANSION = re.compile(
    rf"\$\{{(?:#?(?:{_NAME}|[@*#?$!\d-])"
    rf"|(?:{_NAME}|[@*\d])(?:(?::?[-+?]|%%?|##?|//?|\^\^?|,,?)[^`'\"\\{{}}$\n]*|:[ ]?\d+(?::\d+)?))\}}\Z"
)
