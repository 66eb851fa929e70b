"""Files and environments of other people: charging sessions, maps, road networks."""
