"""Files of other people: charging sessions, maps, road networks, problems of teams."""
