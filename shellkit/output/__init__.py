"""Bytes on the way to a result: bounded (`buffer`), decoded (`text`), and cleaned for a model (`ansi`).

Pure: it touches no process, descriptor, clock or event loop. Sessions feed it; `ShellResult` holds what comes out.
"""
