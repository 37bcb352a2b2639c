"""The templates of the generated files: modules that are read and not run."""
