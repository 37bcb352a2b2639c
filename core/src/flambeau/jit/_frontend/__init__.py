"""From the text of a program to its graph: the forms of the language, one file each."""
