"""The site: one page of HTML that shows a project in a browser: its nodes, their data flow and the last run."""
