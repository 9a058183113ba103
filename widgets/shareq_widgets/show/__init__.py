"""`shareq show`: the control room as a page in the browser, without a notebook.

`source` finds what SOURCE names and writes the code of the page's only cell; `app` serves the page with Voila;
`command` is the command.
"""
