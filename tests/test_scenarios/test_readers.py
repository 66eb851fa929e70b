"""The readers: what they read from small files written here, what they refuse, and the public files if at hand."""

import gzip
import os
from datetime import date
from pathlib import Path

import pytest

from cmpg.errors import FileError
from cmpg.scenarios.readers.acn import read_sessions
from cmpg.scenarios.readers.movingai import GridMap, read_map, read_scen
from cmpg.scenarios.readers.text import read_lines
from cmpg.scenarios.readers.tntp import read_network, read_nodes, read_trips

DATA = Path(__file__).parents[3] / "shared" / "data"

needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"NOT TESTED ON REAL DATA: there is no folder {DATA}; put the public files there"
)

HEADER = "arrival,departure,requested_energy (kWh),delivered_energy (kWh),station_id,session_id\n"
MAP = "type octile\nheight 2\nwidth 3\nmap\n.G@\nTSW\n"
NETWORK = """<NUMBER OF ZONES> 2
<NUMBER OF NODES> 3
<FIRST THRU NODE> 1
<NUMBER OF LINKS> 2
<END OF METADATA>

~ init_node\tterm_node\tcapacity\tlength\tfree_flow_time\tb\tpower\tspeed\ttoll\tlink_type\t;
\t1\t2\t5000.5\t1\t6\t0.15\t4\t0\t0\t1\t;
  2   3   100 2 7 0 1 0 0 1;
"""
TRIPS = """<NUMBER OF ZONES> 3
<TOTAL OD FLOW> 30.0
<END OF METADATA>

Origin  1
    1 :   0.0;  2 :  10.0;  3 : 5.5;
Origin  2
    3 : 14.5;
"""


@pytest.fixture
def write(tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def refusal(reader, path):
    with pytest.raises(FileError) as caught:
        reader(path)
    assert path.name in str(caught.value)
    return str(caught.value)


# --- text


def test_lines_lose_their_ends_and_the_first_its_byte_order_mark(write):
    path = write("a.txt", b"\xef\xbb\xbfone\r\ntwo\n\nfour")
    assert [(line.number, line.text) for line in read_lines(path)] == [(1, "one"), (2, "two"), (3, ""), (4, "four")]


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert "cannot be read" in refusal(read_map, tmp_path / "nowhere.map")
    assert "cannot be read" in refusal(read_map, tmp_path)


def test_a_file_must_be_compressed_exactly_when_its_name_says_so(write):
    assert "not the gzip file" in refusal(read_sessions, write("a.csv.gz", HEADER))
    assert "name does not say so" in refusal(read_sessions, write("a.csv", gzip.compress(HEADER.encode())))


def test_a_truncated_or_damaged_archive_is_refused(write):
    row = "2024-01-01 08:00,2024-01-01 09:00,9,9.0,P,{}\n"
    whole = gzip.compress((HEADER + "".join(row.format(i * 7919) for i in range(3000))).encode())
    assert "too early" in refusal(read_sessions, write("cut.csv.gz", whole[: len(whole) // 2]))
    damaged = whole[:200] + bytes(byte ^ 0xFF for byte in whole[200:260]) + whole[260:]
    assert "damaged.csv.gz" in refusal(read_sessions, write("damaged.csv.gz", damaged))


@pytest.mark.parametrize("reader", [read_sessions, read_map, read_scen, read_network, read_trips, read_nodes])
def test_binary_and_empty_files_are_refused(reader, write):
    assert "line 1: byte 1 is not UTF-8" in refusal(reader, write("picture", b"\x89PNG\r\n\x1a\n\x00"))
    assert "line 1: there is a zero byte" in refusal(reader, write("zeros", b"ab\0\0"))
    refusal(reader, write("empty", b""))


# --- ACN


@pytest.mark.parametrize("name", ["s.csv", "s.csv.gz"])
def test_sessions_are_read_in_order_with_local_times(write, name):
    text = HEADER + (
        '2024-03-31 23:30:00-07:00,2024-04-01 06:00:00-07:00,9,6.61,"P, north",x\n\n'
        "2024-03-31 08:00:00-07:00,2024-03-31 08:00:00-07:00,9,0,Q,y\n"
    )
    path = write(name, gzip.compress(text.encode()) if name.endswith("gz") else text)
    late, still = read_sessions(path)
    assert (late.arrival.date(), late.arrival.hour, late.energy) == (date(2024, 3, 31), 23, 6.61)
    assert (late.station, late.identifier) == ("P, north", "x")
    assert still.departure == still.arrival
    assert still.energy == 0


def test_a_file_is_read_again_once_it_has_changed(write):
    row = "2024-03-31 08:00:00-07:00,2024-03-31 09:00:00-07:00,9,6,Q,y\n"
    path = write("changing.csv", HEADER + row)
    os.utime(path, (1, 1))  # long ago: what was read is kept
    first = read_sessions(path)
    assert read_sessions(path) is first
    write("changing.csv", HEADER + row.replace("Q", "R"))
    assert read_sessions(path) != first


def test_columns_may_come_in_any_order(write):
    text = "session_id,station_id,delivered_energy (kWh),departure,arrival\nx,P,5,2024-01-01 09:00,2024-01-01 08:00\n"
    (session,) = read_sessions(write("s.csv", text))
    assert (session.station, session.energy, session.arrival.hour) == ("P", 5.0, 8)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("2024-01-01 09:00,2024-01-01 08:59,9,5,P,x", "before it begins"),
        ("2024-01-01 09:00-07:00,2024-01-01 09:00-06:00,9,5,P,x", "before it begins"),
        ("2024-01-01 09:00-07:00,2024-01-01 10:00,9,5,P,x", "offset"),
        ("yesterday,2024-01-01 10:00,9,5,P,x", "arrival is 'yesterday'"),
        ("2024-01-01 09:00,,9,5,P,x", "departure is ''"),
        ("2024-01-01 09:00,2024-01-01 10:00,9,lots,P,x", "'lots'; a finite number"),
        ("2024-01-01 09:00,2024-01-01 10:00,9,nan,P,x", "'nan'; a finite number"),
        ("2024-01-01 09:00,2024-01-01 10:00,9,-1,P,x", "cannot be negative"),
        ("2024-01-01 09:00,2024-01-01 10:00,9,5,,x", "station_id is blank"),
        ("2024-01-01 09:00,2024-01-01 10:00,9", "3 fields"),
    ],
)
def test_a_bad_session_is_refused_with_its_line(write, row, problem):
    text = HEADER + "2024-01-01 08:00,2024-01-01 09:00,9,5,P,a\n" + row + "\n"
    message = refusal(read_sessions, write("s.csv", text))
    assert "line 3: " in message
    assert problem in message


def test_other_columns_are_named(write):
    message = refusal(read_sessions, write("s.csv", "arrival,leaving\n"))
    assert "line 1: the columns are: arrival, leaving; missing: departure, delivered_energy (kWh)" in message


# --- MovingAI


@pytest.mark.parametrize(
    "text", [MAP, MAP.replace("\n", "\r\n"), MAP.rstrip("\n"), MAP.replace("type octile\n", "") + "\n\n"]
)
def test_maps_are_read_with_and_without_a_type_and_a_last_line_end(write, text):
    world = read_map(write("a.map", text))
    assert (world.width, world.height, world.rows) == (3, 2, (".G@", "TSW"))
    assert world.free_cells() == ((0, 0), (1, 0), (1, 1))
    assert not any(world.is_free(cell) for cell in [(2, 0), (0, 1), (2, 1), (-1, 0), (0, 2), (3, 0)])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (MAP.replace("S", "x"), "line 6: column 2 holds 'x'"),
        (MAP.replace("TSW", "TS"), "line 6: there are 2 cells; width is 3"),
        (MAP.replace(".G@", ".G@."), "line 5: there are 4 cells; width is 3"),
        (MAP.replace("TSW\n", ""), "1 lines; its head says height 2"),
        (MAP + "...\n", "3 lines; its head says height 2"),
        (MAP.replace("height 2\n", ""), "no height above zero"),
        (MAP.replace("width 3", "width 0"), "no width above zero"),
        (MAP.replace("width 3", "width wide"), "line 3: width is 'wide'"),
        (MAP.replace("width 3", "depth 3"), "line 3: 'depth 3' is not part of a map's head"),
        ("type octile\nheight 2\nwidth 3\n", "no line `map`"),
    ],
)
def test_a_bad_map_is_refused_with_its_line(write, text, problem):
    assert problem in refusal(read_map, write("a.map", text))


def test_pairs_are_read(write):
    text = "version 1\n0\ta b.map\t3\t2\t0\t0\t1\t1\t2.41421356\n\n1 a.map 3 2 1 0 0 0 1\n"
    first, second = read_scen(write("a.scen", text))
    assert (first.start, first.goal, first.map_size, first.line) == ((0, 0), (1, 1), (3, 2), 2)
    assert (second.start, second.goal, second.line) == ((1, 0), (0, 0), 4)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 a.map 3 2 0 0 1 1 2\n", "line 1: '0 a.map 3 2 0 0 1 1 2' is not the head"),
        ("version 1\n0 a.map 3 2 0 0 1\n", "line 2: there are 7 fields"),
        ("version 1\n0 a.map 3 2 0 0 1 1 far\n", "line 2: length is 'far'"),
        ("version 1\n0 a.map 3 2 0 -1 1 1 2\n", "line 2: start y is '-1'"),
    ],
)
def test_bad_pairs_are_refused_with_their_line(write, text, problem):
    assert problem in refusal(read_scen, write("a.scen", text))


# --- TNTP


def test_a_network_is_read_whatever_stands_between_its_fields(write):
    network = read_network(write("n_net.tntp", NETWORK))
    assert (network.num_nodes, network.num_zones, network.first_through_node) == (3, 2, 1)
    first, second = network.links
    assert (first.tail, first.head, first.capacity, first.free_flow_time, first.b, first.power, first.line) == (
        1, 2, 5000.5, 6.0, 0.15, 4.0, 8,
    )  # fmt: skip
    assert (second.tail, second.head, second.length, second.b) == (2, 3, 2.0, 0.0)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("LINKS> 2", "LINKS> 3", "has 2 links; <NUMBER OF LINKS> promises 3"),
        ("<NUMBER OF NODES> 3\n", "", "does not say <NUMBER OF NODES>"),
        ("NODES> 3", "NODES> three", "line 2: <NUMBER OF NODES> is 'three'"),
        ("NODES> 3", "NODES> 0", "line 2: <NUMBER OF NODES> is 0"),
        ("<END OF METADATA>\n", "", "is not a line `<KEY> value`"),
        ("  2   3   100", "  2   4   100", "line 9: term_node is 4; the metadata promise 1 to 3"),
        ("  2   3   100", "  0   3   100", "line 9: init_node is 0"),
        ("  2   3   100 2 7", "  2   3   100 2 -7", "line 9: free_flow_time, b and power"),
        ("5000.5", "5000,5", "line 8: capacity is '5000,5'"),
        ("5000.5", "0", "line 8: capacity is 0; above zero"),
        ("  2   3   100 2 7 0 1 0 0 1;", "  2   3   10", "line 9: there are 3 fields"),
    ],
)
def test_a_bad_network_is_refused(write, old, new, problem):
    assert old in NETWORK
    assert problem in refusal(read_network, write("n_net.tntp", NETWORK.replace(old, new)))


def test_a_trip_table_is_read_without_its_empty_entries(write):
    table = read_trips(write("n_trips.tntp", TRIPS))
    assert [(trip.origin, trip.destination, trip.flow, trip.line) for trip in table.trips] == [
        (1, 2, 10.0, 6),
        (1, 3, 5.5, 6),
        (2, 3, 14.5, 8),
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    3 : 14.5;\n", "", "line 2: the total is said to be 30; the flows add up to 15.5. Is the file cut?"),
        ("14.5;", "14.5", "line 8: '3 : 14.5' is not an entry"),
        ("3 : 14.5;", "3 : ;", "line 8: '3 : ;' is not an entry"),
        ("14.5", "many", "line 8: the flow is 'many'"),
        ("14.5", "-14.5", "line 8: the flow to 3 is -14.5"),
        ("    3 : 14.5", "    4 : 14.5", "line 8: the destination is 4; the metadata promise 1 to 3"),
        ("Origin  2", "Origin  9", "line 7: the origin is 9"),
        ("Origin  2", "Origin", "line 7: 'Origin' must be"),
        ("Origin  1\n", "", "line 5: '1 :   0.0;  2 :  10.0;  3 : 5.5;' comes before the first `Origin`"),
        ("<NUMBER OF ZONES> 3\n", "", "does not say <NUMBER OF ZONES>"),
    ],
)
def test_a_bad_trip_table_is_refused(write, old, new, problem):
    assert old in TRIPS
    assert problem in refusal(read_trips, write("n_trips.tntp", TRIPS.replace(old, new)))


def test_node_positions_are_read(write):
    assert read_nodes(write("n_node.tntp", "Node\tX\tY\t;\n1\t-96.5\t43\t;\n2 0 1;\n")) == {
        1: (-96.5, 43.0),
        2: (0.0, 1.0),
    }
    assert "line 2: there are 2 fields" in refusal(read_nodes, write("n_node.tntp", "Node X Y ;\n1 2 ;\n"))
    assert "has no nodes" in refusal(read_nodes, write("n_node.tntp", "Node X Y ;\n"))


# --- the public files


@needs_data
@pytest.mark.parametrize(("site", "sessions", "on_june_12"), [("caltech", 3527, 46), ("jpl", 6026, 72)])
def test_real_sessions(site, sessions, on_june_12):
    found = read_sessions(DATA / "acn" / f"{site}_2019-05_2019-08.csv.gz")
    assert len(found) == sessions
    assert sum(session.arrival.date() == date(2019, 6, 12) and session.energy > 0 for session in found) == on_june_12
    assert len({session.identifier for session in found}) == sessions


@needs_data
@pytest.mark.parametrize(
    ("name", "size", "free"),
    [("8x8", 8, 64), ("empty-32-32", 32, 1024), ("random-32-32-10", 32, 922), ("random-32-32-20", 32, 819)],
)
def test_real_maps(name, size, free):
    world = read_map(DATA / "maps" / f"{name}.map")
    assert isinstance(world, GridMap)
    assert (world.width, world.height, len(world.free_cells())) == (size, size, free)


@needs_data
def test_real_networks():
    city, trips = (
        read_network(DATA / "tntp" / "SiouxFalls_net.tntp"),
        read_trips(DATA / "tntp" / "SiouxFalls_trips.tntp"),
    )
    assert (city.num_nodes, len(city.links)) == (24, 76)
    assert sum(trip.flow for trip in trips.trips) == 360600
    assert len(read_nodes(DATA / "tntp" / "SiouxFalls_node.tntp")) == 24
    small, trip = read_network(DATA / "tntp" / "Braess_net.tntp"), read_trips(DATA / "tntp" / "Braess_trips.tntp")
    assert (len(small.links), small.links[0].b, small.links[-1].power) == (5, 1e9, 1.0)
    assert [(each.origin, each.destination, each.flow) for each in trip.trips] == [(1, 2, 6.0)]


@needs_data
def test_real_files_under_a_wrong_name_are_refused():
    tntp, acn = DATA / "tntp", DATA / "acn" / "jpl_2019-05_2019-08.csv.gz"
    assert "does not say <NUMBER OF NODES>" in refusal(read_network, tntp / "SiouxFalls_trips.tntp")
    assert "comes before the first `Origin`" in refusal(read_trips, tntp / "SiouxFalls_net.tntp")
    assert "of the metadata" in refusal(read_network, tntp / "SiouxFalls_flow.tntp")
    assert "not part of a map's head" in refusal(read_map, acn)
    assert "missing: arrival" in refusal(read_sessions, DATA / "maps" / "8x8.map")
