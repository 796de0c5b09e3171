"""The project as one page of HTML for a browser: what there is, where it comes from, how the last run went"""
