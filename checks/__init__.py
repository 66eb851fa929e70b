"""Everything that examines the library and is not a unit test; `python -m checks` lists what there is."""
