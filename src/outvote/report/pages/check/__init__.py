"""The page of `check`, and of `explore --targets`."""

from outvote.report.pages.check.markdown import sections as sections
from outvote.report.pages.check.view import page as page
