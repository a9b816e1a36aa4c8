"""The workbench: pages in a browser for the folders that commands have written, kept up to date.

`app` has the addresses, `guard` lets nobody else in, `views` makes the pages, `shelf` knows the
folders and what is found in them, `runs` starts commands. Nothing else imports this package.
"""
