"""The largest requests that a message holds, for every command, stage, operator and option that takes a list
or a document, by name. They are encoded here, one at a time, since all of them together have gigabytes.
"""

import struct

BODY_BYTES_MAX = 16_000_000
SEQUENCE_BYTES_MAX = 47_500_000


class Raw:
    """A value that is encoded already."""

    def __init__(self, kind, content):
        self.kind, self.content = kind, content


class Many:
    """An array, or with `kind` 3 a document, of as many `item(at)` as fit, at most `count`."""

    latest = []

    def __init__(self, item, count=None, bytes_max=BODY_BYTES_MAX - 2000, kind=4, name=str):
        self.item, self.count, self.bytes_max, self.kind, self.name, self.encoded = item, count, bytes_max, kind, name, None

    @property
    def content(self):
        """The bytes, made when they are needed; the last few stay for the next request."""
        if self.encoded is None:
            self.encoded = self.build()
            Many.latest.append(self)
            if len(Many.latest) > 8:
                Many.latest.pop(0).encoded = None
        return self.encoded

    def build(self):
        parts, size, at = [], 5, 0
        constant = None if callable(self.item) else encode(self.item)
        while self.count is None or at < self.count:
            kind, content = constant or encode(self.item(at))
            part = bytes([kind]) + self.name(at).encode() + b"\0" + content
            size += len(part)
            if size > self.bytes_max:
                break
            parts.append(part)
            at += 1
        content = b"".join(parts)
        return struct.pack("<i", len(content) + 5) + content + b"\0"


def encode(value):
    """The type and the bytes of a value."""
    if isinstance(value, (Raw, Many)):
        return value.kind, value.content
    if isinstance(value, bool):
        return 8, b"\1" if value else b"\0"
    if isinstance(value, int):
        return (16, struct.pack("<i", value)) if -(2**31) <= value < 2**31 else (18, struct.pack("<q", value))
    if isinstance(value, float):
        return 1, struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode()
        return 2, struct.pack("<i", len(text) + 1) + text + b"\0"
    if isinstance(value, bytes):
        return 5, struct.pack("<iB", len(value), 4 if len(value) == 16 else 0) + value
    if value is None:
        return 10, b""
    if isinstance(value, dict):
        return 3, document(value)
    if isinstance(value, list):
        return 4, document({str(at): item for at, item in enumerate(value)})
    raise TypeError(type(value))


def document(fields):
    parts = []
    for name, value in fields.items():
        kind, content = encode(value)
        if name == "*":  # the fields of the document stand here
            parts.append(content[4:-1])
            continue
        parts.append(bytes([kind]) + name.encode() + b"\0" + content)
    content = b"".join(parts)
    return struct.pack("<i", len(content) + 5) + content + b"\0"


def many(item, count=None, **options):
    return Many(item, count, **options)


def fields(item, count=None, name=lambda at: f"f{at}", **options):
    """A document of as many fields as fit."""
    return many(item, count, kind=3, name=name, **options)


def nested(levels, inner, wrap):
    for _ in range(levels):
        inner = wrap(inner)
    return inner


def numbers(count=None, **options):
    return many(lambda at: at, count, **options)


def words(count=None, **options):
    return many(lambda at: f"w{at}", count, **options)


def expressions():
    """Expressions with as many operands as fit, by name."""
    one = {"$add": ["$n", 1]}
    rows = {
        name: {f"${name}": many(operand)}
        for name, operand in {
            "and": "$n",
            "or": "$no",
            "add": "$n",
            "multiply": "$n",
            "concat": "$s",
            "concatArrays": "$v",
            "setUnion": "$v",
            "setIntersection": "$v",
            "setEquals": "$v",
            "mergeObjects": "$o",
            "ifNull": "$no",
            "max": "$n",
            "min": "$n",
            "sum": "$n",
            "avg": "$n",
            "stdDevPop": "$n",
            "bitAnd": "$n",
            "allElementsTrue": "$v",
        }.items()
    }
    rows |= {
        "array": many("$n"),
        "array of constants": numbers(),
        "array of nulls": many(None),
        "array of expressions": many(one),
        "object": fields("$n"),
        "object of constants": fields(1),
        "object of expressions": fields(one),
        "in constants": {"$in": ["$n", numbers()]},
        "in expressions": {"$in": ["$n", many("$n")]},
        "switch": {
            "$switch": {
                "branches": many(lambda at: {"case": {"$eq": ["$n", at]}, "then": at}, bytes_max=15_500_000),
                "default": 1,
            }
        },
        "switch of constants": {"$switch": {"branches": many({"case": False, "then": 1}, bytes_max=15_500_000), "default": 1}},
        "let": {"$let": {"vars": fields("$n", name=lambda at: f"v{at}"), "in": 1}},
        "let of constants": {"$let": {"vars": fields(1, name=lambda at: f"v{at}"), "in": 1}},
        "zip": {"$zip": {"inputs": many("$v")}},
        "literal": {"$literal": numbers()},
        "setField": nested(190, "$$ROOT", lambda inner: {"$setField": {"field": "a", "input": inner, "value": 1}}),
        "dateFromParts": {"$dateFromParts": fields(1)},
        "setDifference": {"$setDifference": [numbers(bytes_max=7_900_000), numbers(bytes_max=7_900_000)]},
        "sortArray": {"$sortArray": {"input": numbers(), "sortBy": 1}},
        "sortArray by": {"$sortArray": {"input": "$v", "sortBy": fields(1)}},
        "reverse": {"$reverseArray": {"$literal": numbers()}},
        "map": {"$map": {"input": numbers(), "in": {"$add": ["$$this", 1]}}},
        "filter": {"$filter": {"input": many("$n"), "cond": {"$gt": ["$$this", 1]}}},
        "reduce": {"$reduce": {"input": numbers(), "initialValue": 0, "in": {"$add": ["$$this", "$$value"]}}},
        "arrayToObject": {"$arrayToObject": many(lambda at: [f"k{at}", 1])},
        "objectToArray": {"$objectToArray": {"$literal": fields(1)}},
        "string": "x" * (BODY_BYTES_MAX - 3000),
        "split": {"$split": ["a," * 7_900_000, ","]},
        "replaceAll": {"$replaceAll": {"input": "a," * 5_000_000, "find": ",", "replacement": "."}},
        "regexFindAll": {"$regexFindAll": {"input": "a," * 7_900_000, "regex": "a"}},
        "trim": {"$trim": {"input": " " * 8_000_000, "chars": "x" * 7_000_000}},
        "indexOfArray": {"$indexOfArray": [numbers(), -1]},
        "range": {"$size": {"$range": [0, 10_000_000]}},
        "firstN": {"$firstN": {"input": numbers(), "n": 1_000_000}},
        "maxN": {"$maxN": {"input": numbers(), "n": 1_000_000}},
        "percentile": {"$percentile": {"input": numbers(), "p": [0.5], "method": "approximate"}},
        "median of p": {"$percentile": {"input": "$v", "p": many(0.5), "method": "approximate"}},
        "path": "$" + ".".join(["a"] * 190),
        "long path": "$" + ".".join(["a"] * 7_900_000),
        "strLenCP": {"$strLenCP": "é" * 7_000_000},
        "toHashedIndexKey": {"$toHashedIndexKey": {"$literal": numbers()}},
        "cmp": {"$cmp": [{"$literal": numbers(bytes_max=7_900_000)}, {"$literal": numbers(bytes_max=7_900_000)}]},
        "deep": nested(95, "$n", lambda inner: {"$add": [inner, 1]}),
        "dateToString": {"$dateToString": {"date": "$$NOW", "format": "%Y" * 7_000_000}},
        "function like": {"$getField": {"field": {"$literal": "x" * 15_000_000}, "input": "$$ROOT"}},
    }
    return rows


def filters():
    """Filters with as many conditions as fit, by name."""
    equal = lambda at: {f"f{at % 7}": at}
    schema = lambda **rules: {"$jsonSchema": rules}
    rows = {
        "fields": fields(lambda at: at),
        "the same field": fields(lambda at: at, name=lambda at: "n"),
        "fields in ranges": fields(lambda at: {"$gt": at}),
        "operators of a field": {"n": fields(1, name=lambda at: "$gt")},
        "all": {"v": {"$all": numbers()}},
        "all nulls": {"v": {"$all": many(None)}},
        "all words": {"s": {"$all": words()}},
        "all elemMatch": {"v": {"$all": many({"$elemMatch": {"$gt": 1}})}},
        "in": {"n": {"$in": numbers()}},
        "in of _id": {"_id": {"$in": numbers()}},
        "in words": {"s": {"$in": words()}},
        "nin": {"n": {"$nin": numbers()}},
        "in nulls": {"n": {"$in": many(None)}},
        "in backwards": {"n": {"$in": many(lambda at: -at)}},
        "in indexed": {"i": {"$in": numbers()}},
        "in regexes": {"s": {"$in": many(Raw(11, b"a\0\0"))}},
        "in different regexes": {"s": {"$in": many(lambda at: Raw(11, b"%d\0\0" % at))}},
        "in documents": {"o": {"$in": many(lambda at: {"a": at})}},
        "in arrays": {"v": {"$in": many(lambda at: [at])}},
        "or": {"$or": many(equal)},
        "or of one field": {"$or": many(lambda at: {"n": at})},
        "or in ranges": {"$or": many(lambda at: {f"f{at % 7}": {"$gt": at}})},
        "or indexed ranges": {"$or": many(lambda at: {"i": {"$gt": at}})},
        "or two indexes": {"$or": many(lambda at: {"ij"[at % 2]: {"$lt": at}})},
        "or of ands": {"$or": many(lambda at: {"i": at, "j": at})},
        "or empty": {"$or": many({})},
        "and": {"$and": many(equal)},
        "and in ranges": {"$and": many(lambda at: {"n": {"$gt": -at}})},
        "and indexed": {"$and": many(lambda at: {"i": {"$gt": -at}})},
        "and of ors": {"$and": many(lambda at: {"$or": [{"i": at}, {"j": at}]})},
        "and of ins": {"$and": many(lambda at: {"i": {"$in": [at, 1, 2]}})},
        "nor": {"$nor": many(equal)},
        "ne": {"$and": many(lambda at: {"n": {"$ne": at}})},
        "ne indexed": {"$and": many(lambda at: {"i": {"$ne": at}})},
        "nin indexed": {"i": {"$nin": numbers()}},
        "not": {"n": {"$not": fields(1, name=lambda at: "$gt")}},
        "exists": {"$and": many(lambda at: {f"g{at}": {"$exists": False}})},
        "elemMatch": {"v": {"$elemMatch": fields(1, name=lambda at: "$gt")}},
        "elemMatch fields": {"v": {"$elemMatch": fields(1)}},
        "elemMatch in": {"v": {"$elemMatch": {"$in": numbers()}}},
        "type": {"n": {"$type": many("int")}},
        "bits": {"n": {"$bitsAllSet": numbers()}},
        "size": {"$or": many(lambda at: {"v": {"$size": at}})},
        "mod": {"$and": many(lambda at: {"n": {"$mod": [1, 0]}})},
        "eq a document": {"o": fields(1)},
        "eq an array": {"v": numbers()},
        "gt an array": {"v": {"$gt": numbers()}},
        "eq an array indexed": {"i": numbers()},
        "regexes": {"$or": many(lambda at: {"s": Raw(11, b"x%d\0\0" % at)})},
        "the same regex": {"$or": many({"s": Raw(11, b"(x|y)+z\0\0")})},
        "one regex": {"s": Raw(11, b"(a" + b"|b" * 16_000 + b")$\0\0")},
        "deep": nested(95, {"n": 1}, lambda inner: {"$and": [inner]}),
        "deep or": nested(95, {"n": 1}, lambda inner: {"$or": [inner, {"n": 2}, {"i": 3}]}),
        "long path": {".".join(["a"] * 7_900_000): 1},
        "path": {".".join(["0"] * 190): 1},
        "comment": {"$comment": "x" * 15_000_000},
        "large string": {"s": "x" * 15_000_000},
        "schema required": schema(required=words()),
        "schema enum": schema(properties={"n": {"enum": numbers()}}),
        "schema properties": schema(properties=fields({"type": "string"})),
        "schema types": schema(properties={"n": {"bsonType": many("int")}}),
        "schema anyOf": schema(anyOf=many({"required": ["zz"]})),
        "schema allOf": schema(allOf=many({"required": ["_id"]})),
        "schema oneOf": schema(oneOf=many({"required": ["zz"]})),
        "schema items": schema(properties={"v": {"items": many({"type": "number"})}}),
        "schema dependencies": schema(dependencies=fields(["n"])),
        "schema patterns": schema(patternProperties=fields({"type": "string"}, name=lambda at: f"p{at}")),
        "schema deep": nested(80, {}, lambda inner: {"$jsonSchema": inner} if False else {"properties": {"o": inner}}),
    }
    rows["schema deep"] = {"$jsonSchema": rows["schema deep"]}
    return rows


def stages():
    """Pipelines with as large a stage as fits, by name."""

    def one(name, value):
        return [{name: value}]

    text = lambda at: f"f{at}"
    rows = {
        "project": one("$project", fields(1)),
        "project out": one("$project", fields(0)),
        "project fields": one("$project", fields("$n")),
        "project expressions": one("$project", fields({"$add": ["$n", 1]})),
        "project paths": one("$project", fields(1, name=lambda at: f"a.b.f{at}")),
        "project deep": one("$project", {".".join(["a"] * 190): 1}),
        "project nested": one("$project", {"a": fields(1)}),
        "set": one("$set", fields(1)),
        "set fields": one("$set", fields("$n")),
        "addFields": one("$addFields", fields({"$add": ["$n", 1]})),
        "set paths": one("$set", fields(1, name=lambda at: f"a.f{at}")),
        "set one large": one("$set", {"x": numbers()}),
        "set an object": one("$set", {"x": fields("$n")}),
        "unset": one("$unset", many(text)),
        "unset paths": one("$unset", many(lambda at: f"a.f{at}")),
        "group": one("$group", fields({"$sum": 1}, name=lambda at: f"f{at}" if at else "_id")),
        "group by many": one("$group", {"_id": fields("$n")}),
        "group by constants": one("$group", {"_id": fields(1)}),
        "group push": one("$group", {"_id": None, "x": {"$push": fields("$n")}}),
        "group concatArrays": one("$group", {"_id": None, "x": {"$push": many("$n")}}),
        "group top": one("$group", {"_id": None, "x": {"$top": {"sortBy": fields(1), "output": 1}}}),
        "group percentile": one(
            "$group", {"_id": None, "x": {"$percentile": {"input": "$n", "p": many(0.5), "method": "approximate"}}}
        ),
        "bucket": one("$bucket", {"groupBy": "$n", "boundaries": numbers(), "default": -1}),
        "bucket output": one("$bucket", {"groupBy": "$n", "boundaries": [0, 9], "default": -1, "output": fields({"$sum": 1})}),
        "bucketAuto": one("$bucketAuto", {"groupBy": "$n", "buckets": 5, "output": fields({"$sum": 1})}),
        "sort": one("$sort", fields(1)),
        "sortByCount": one("$sortByCount", fields("$n")),
        "facet": one("$facet", fields([])),
        "facet of matches": one("$facet", fields([{"$match": {"n": 1}}])),
        "facet of groups": one("$facet", fields([{"$group": {"_id": None}}])),
        "facet pipeline": one("$facet", {"a": many({"$match": {}})}),
        "lookup let": one("$lookup", {"from": "c", "let": fields("$n", name=lambda at: f"v{at}"), "pipeline": [], "as": "x"}),
        "lookup pipeline": one("$lookup", {"from": "c", "pipeline": many({"$match": {"n": 1}}), "as": "x"}),
        "lookup match": one(
            "$lookup", {"from": "c", "pipeline": [{"$match": {"$or": many(lambda at: {"i": {"$gt": at}})}}], "as": "x"}
        ),
        "lookup in": one("$lookup", {"from": "c", "pipeline": [{"$match": {"n": {"$in": numbers()}}}], "as": "x"}),
        "graphLookup": one(
            "$graphLookup", {"from": "c", "startWith": numbers(), "connectFromField": "n", "connectToField": "n", "as": "x"}
        ),
        "graphLookup restrict": one(
            "$graphLookup",
            {
                "from": "c",
                "startWith": "$n",
                "connectFromField": "n",
                "connectToField": "i",
                "as": "x",
                "restrictSearchWithMatch": {"$or": many(lambda at: {"i": at})},
            },
        ),
        "graphLookup all": one(
            "$graphLookup",
            {
                "from": "c",
                "startWith": "$n",
                "connectFromField": "n",
                "connectToField": "i",
                "as": "x",
                "restrictSearchWithMatch": {"v": {"$all": numbers()}},
            },
        ),
        "unionWith": one("$unionWith", {"coll": "c", "pipeline": many({"$match": {"n": 1}})}),
        "unionWith documents": one("$unionWith", {"pipeline": [{"$documents": many({"a": 1})}]}),
        "unionWith match": one("$unionWith", {"coll": "c", "pipeline": [{"$match": fields(lambda at: at)}]}),
        "replaceRoot": one("$replaceRoot", {"newRoot": fields("$n")}),
        "replaceWith": one("$replaceWith", {"$mergeObjects": many("$o")}),
        "redact": one(
            "$redact",
            {"$switch": {"branches": many({"case": "$no", "then": "$$KEEP"}, bytes_max=15_500_000), "default": "$$PRUNE"}},
        ),
        "windows": one("$setWindowFields", {"sortBy": {"n": 1}, "output": fields({"$sum": "$n"})}),
        "windows in ranges": one(
            "$setWindowFields", {"sortBy": {"n": 1}, "output": fields({"$sum": "$n", "window": {"documents": [-1, 1]}})}
        ),
        "window partitions": one(
            "$setWindowFields", {"partitionBy": fields("$n"), "sortBy": {"n": 1}, "output": {"x": {"$sum": 1}}}
        ),
        "window sort": one("$setWindowFields", {"sortBy": fields(1), "output": {"x": {"$sum": 1}}}),
        "window push": one("$setWindowFields", {"output": {"x": {"$push": many("$n")}}}),
        "fill": one("$fill", {"output": fields({"value": 1})}),
        "fill methods": one("$fill", {"sortBy": {"n": 1}, "output": fields({"method": "locf"})}),
        "fill linear": one("$fill", {"sortBy": {"n": 1}, "output": fields({"method": "linear"})}),
        "fill partitions": one("$fill", {"partitionByFields": many(text), "output": {"x": {"value": 1}}}),
        "fill partition by": one("$fill", {"partitionBy": fields("$n"), "output": {"x": {"value": 1}}}),
        "densify": one("$densify", {"field": "n", "partitionByFields": many(text), "range": {"step": 1, "bounds": [0, 2]}}),
        "densify steps": one("$densify", {"field": "n", "range": {"step": 0.0001, "bounds": [0, 1000]}}),
        "merge on": one("$merge", {"into": "m", "on": many(text)}),
        "merge let": one(
            "$merge", {"into": "m", "let": fields("$n", name=lambda at: f"v{at}"), "whenMatched": [{"$set": {"a": 1}}]}
        ),
        "merge update": one("$merge", {"into": "m", "whenMatched": many({"$set": {"a": 1}})}),
        "merge set": one("$merge", {"into": "m", "whenMatched": [{"$set": fields("$n")}]}),
        "rankFusion": one("$rankFusion", {"input": {"pipelines": fields([{"$sort": {"n": 1}}], bytes_max=15_900_000)}}),
        "rankFusion weights": one(
            "$rankFusion", {"input": {"pipelines": {"a": [{"$sort": {"n": 1}}]}}, "combination": {"weights": fields(1)}}
        ),
        "scoreFusion": one(
            "$scoreFusion",
            {"input": {"pipelines": fields([{"$score": {"score": "$n"}}], bytes_max=15_900_000), "normalization": "none"}},
        ),
        "score": one("$score", {"score": {"$add": many("$n")}}),
        "count": one("$count", "x" * 15_000_000),
        "unwind": one("$unwind", {"path": "$" + ".".join(["a"] * 100), "includeArrayIndex": "x" * 15_000_000}),
        "sample": one("$sample", fields(1)),
        "matches": many({"$match": {"n": 1}}),
        "sets": many(lambda at: {"$set": {f"f{at}": 1}}),
        "thousand sets": many(lambda at: {"$set": fields("$n", bytes_max=14_000)}, 1000),
        "thousand projects": many(lambda at: {"$project": fields(1, bytes_max=14_000)}, 1000),
        "thousand lookups": many({"$lookup": {"from": "c", "localField": "n", "foreignField": "i", "as": "x"}}, 1000),
        "thousand groups": many({"$group": {"_id": "$_id"}}, 1000),
        "thousand sorts": many(lambda at: {"$sort": {"a" if at % 2 else "b": 1}}, 1000),
        "thousand matches": many(lambda at: {"$match": {"n": {"$in": numbers(bytes_max=14_000)}}}, 1000),
        "thousand facets": many({"$facet": {"a": [], "b": []}}, 1000),
        "thousand unions": many({"$unionWith": "c"}, 1000),
        "unwinds": [{"$unwind": "$v"}] * 4,
        "deep lookup": nested(20, [], lambda inner: [{"$lookup": {"from": "c", "pipeline": inner, "as": "x"}}]),
        "deep union": nested(20, [], lambda inner: [{"$unionWith": {"coll": "c", "pipeline": inner}}]),
        "match then sets": [{"$match": fields(lambda at: at, bytes_max=7_900_000)}, {"$set": fields("$n", bytes_max=7_900_000)}],
        "set then match": [{"$set": fields("$n", bytes_max=7_900_000)}, {"$match": fields(lambda at: at, bytes_max=7_900_000)}],
        "project then match": [
            {"$project": fields("$n", bytes_max=7_900_000)},
            {"$match": fields(lambda at: at, bytes_max=7_900_000)},
        ],
        "group then match": [
            {"$group": {"_id": fields("$n", bytes_max=7_900_000)}},
            {"$match": fields(1, name=lambda at: f"_id.f{at}", bytes_max=7_900_000)},
        ],
        "project then project": [{"$project": fields("$n", bytes_max=7_900_000)}, {"$project": fields(1, bytes_max=7_900_000)}],
        "lookup then match": [
            {"$lookup": {"from": "c", "localField": "n", "foreignField": "n", "as": "x"}},
            {"$unwind": "$x"},
            {"$match": fields(1, name=lambda at: f"x.f{at}")},
        ],
        "sort then project": [{"$sort": {"n": 1}}, {"$project": fields("$n")}],
        "facet branches large": one(
            "$facet", {"a": [{"$set": fields("$n", bytes_max=7_900_000)}], "b": [{"$set": fields("$n", bytes_max=7_900_000)}]}
        ),
    }
    return rows


def updates():
    """Updates as large as they fit, by name."""
    rows = {
        operator: {f"${operator}": fields(operand)}
        for operator, operand in {
            "set": 1,
            "unset": 1,
            "inc": 1,
            "mul": 2,
            "min": 1,
            "max": 1,
            "setOnInsert": 1,
            "currentDate": True,
            "push": 1,
            "addToSet": 1,
            "pull": 1,
            "pullAll": [1],
            "pop": 1,
            "bit": {"or": 1},
        }.items()
    }
    rows |= {
        "rename": {"$rename": fields(lambda at: f"r{at}")},
        "set paths": {"$set": fields(1, name=lambda at: f"a.f{at}")},
        "set deep paths": {"$set": fields(1, name=lambda at: f"a.b.c.d.e.f.g.f{at}")},
        "set elements": {"$set": fields(1, name=lambda at: f"v.{at % 900}.f{at}")},
        "set backwards": {"$set": fields(1, name=lambda at: f"f{2_000_000 - at}")},
        "unset paths": {"$unset": fields(1, name=lambda at: f"o.f{at}")},
        "set a large value": {"$set": {"x": numbers()}},
        "set a large document": {"$set": {"x": fields(1)}},
        "push each": {"$push": {"w": {"$each": numbers()}}},
        "push each sorted": {"$push": {"w": {"$each": many(lambda at: -at), "$sort": 1}}},
        "push each sorted by": {"$push": {"w": {"$each": many(lambda at: {"a": -at}), "$sort": {"a": 1}, "$slice": 10}}},
        "push sort of many": {"$push": {"w": {"$each": [{"a": 1}, {"a": 2}], "$sort": fields(1)}}},
        "addToSet each": {"$addToSet": {"w": {"$each": numbers()}}},
        "addToSet each word": {"$addToSet": {"w": {"$each": words()}}},
        "pull in": {"$pull": {"v": {"$in": numbers()}}},
        "pull or": {"$pull": {"v": {"$or": many(lambda at: {"a": at})}}},
        "pull fields": {"$pull": {"v": fields(1)}},
        "pullAll many": {"$pullAll": {"v": numbers()}},
        "pipeline": [{"$set": fields("$n")}],
        "pipeline of many": many({"$set": {"a": 1}}),
        "pipeline unset": [{"$unset": many(lambda at: f"f{at}")}],
        "replacement": fields(1),
        "replacement of numbers": {"w": numbers()},
        "pipeline replace": [{"$replaceWith": {"$mergeObjects": many("$o")}}],
        "unknown operators": fields({}, name=lambda at: f"$x{at}"),
    }
    return rows


def collections():
    """Collections whose documents are as large as their requests, by name. `LONG` are strings that only their
    case distinguishes, so that a comparison under a collation reads them to their end.
    """
    fields_of = lambda at: fields(at, name=lambda field: f"f{field}", bytes_max=1_000_000)
    return {
        "long": [{"_id": 0, "s": LONG, "t": LONG.upper(), "d": 1}, {"_id": 1, "s": LONG.upper(), "t": LONG, "d": 1}],
        "arrays": [{"_id": at, "d": 1, "a": numbers(99_000), "b": many({"x": at}, 99_000)} for at in range(8)],
        "wide": [{"_id": at, "d": 1, "o": fields_of(at)} for at in range(8)],
    }


LONG = "ab c" * 1_950_000


def long_values():
    """Requests that read long strings under a collation, and builds of indexes over large documents. A build
    fails at its end, since all documents have the same `d`.
    """
    collation = {"locale": "en", "strength": 3}
    other = "aB c" * 3_900_000
    find = lambda filter, **more: {"find": "long", "filter": filter, "collation": collation, "singleBatch": True, **more}
    pipeline = lambda *stages: {"aggregate": "long", "pipeline": [*stages], "cursor": {}, "collation": collation}
    both = ["$s", "$t"]
    build = lambda name, key, **more: {
        "createIndexes": name,
        "indexes": [{"key": key, "name": "k", **more}, {"key": {"d": 1}, "name": "d", "unique": True}],
    }
    return {
        "collated eq": find({"s": other}),
        "collated in": find({"s": {"$in": [1, other]}}),
        "collated control characters": find({"s": "\u0001" * 15_600_000}),
        "collated marks": find({"s": "\u0301\u0316" * 3_900_000}),
        "collated list": find({"s": {"$in": [other[:7_900_000], LONG]}}),
        "collated expr": find({"$expr": {"$gt": ["$s", "$t"]}}),
        "collated sort": find({}, sort={"s": 1}),
        "collated distinct": {"distinct": "long", "key": "s", "collation": collation},
        "collated group": pipeline({"$group": {"_id": "$s"}}),
        "collated addToSet": pipeline({"$group": {"_id": 1, "x": {"$addToSet": "$s"}}}),
        "collated max": pipeline({"$group": {"_id": 1, "x": {"$max": "$s"}}}),
        "collated sortArray": pipeline({"$project": {"x": {"$size": {"$sortArray": {"input": both, "sortBy": 1}}}}}),
        "collated setUnion": pipeline({"$project": {"x": {"$size": {"$setUnion": [both]}}}}),
        "collated lookup": pipeline(
            {"$lookup": {"from": "long", "localField": "s", "foreignField": "t", "as": "x"}}, {"$project": {"_id": 1}}
        ),
        "collated window": pipeline(
            {"$setWindowFields": {"partitionBy": "$t", "sortBy": {"s": 1}, "output": {"r": {"$rank": {}}}}}
        ),
        "collated max of an update": {
            "update": "long",
            "updates": [{"q": {"_id": 0}, "u": {"$max": {"t": "aB c" * 1_950_000}}, "collation": collation}],
        },
        "collated delete": {"delete": "long", "deletes": [{"q": {"s": other}, "limit": 0, "collation": collation}]},
        "insert collated long": {"insert": "collated", "documents": [{"s": other}]},
        "createIndexes collated": build("long", {"s": 1}, collation=collation),
        "createIndexes of arrays": build("arrays", {"a": 1}),
        "createIndexes of documents in arrays": build("arrays", {"b.x": 1}),
        "createIndexes of all fields": build("wide", {"$**": 1}),
        "createIndexes of all elements": build("arrays", {"a.$**": 1}),
    }


def commands():
    """Commands by name: a body, and perhaps a sequence of documents."""
    rows = {}
    for name, filter in filters().items():
        rows[f"find {name}"] = {"find": "c", "filter": filter, "singleBatch": True}
        rows[f"explain {name}"] = {"explain": {"find": "c", "filter": filter}}
        rows[f"match {name}"] = {"aggregate": "c", "pipeline": [{"$match": filter}], "cursor": {}}
        rows[f"count {name}"] = {"count": "c", "query": filter}
        rows[f"upsert {name}"] = {"update": "u", "updates": [{"q": filter, "u": {"$set": {"zzz": 1}}, "upsert": True}]}
        rows[f"delete {name}"] = {"delete": "u", "deletes": [{"q": filter, "limit": 1}]}
        rows[f"partial {name}"] = {
            "createIndexes": "c",
            "indexes": [{"key": {"zz": 1}, "name": "zz", "partialFilterExpression": filter}],
        }
        rows[f"arrayFilters {name}"] = {
            "update": "u",
            "updates": [
                {
                    "q": {},
                    "u": {"$set": {"v.$[e]": 1}},
                    "arrayFilters": [{"e": filter if not isinstance(filter, dict) or "v" not in filter else filter["v"]}],
                }
            ],
        }
    for name, expression in expressions().items():
        rows[f"expr {name}"] = {"find": "c", "filter": {"$expr": expression}, "singleBatch": True}
        rows[f"project an expression {name}"] = {
            "aggregate": "c",
            "pipeline": [{"$project": {"x": {"$type": [expression]}}}],
            "cursor": {},
        }
        rows[f"group by {name}"] = {"aggregate": "c", "pipeline": [{"$group": {"_id": {"$type": [expression]}}}], "cursor": {}}
        rows[f"update by {name}"] = {"update": "u", "updates": [{"q": {}, "u": [{"$set": {"x": {"$type": [expression]}}}]}]}
        rows[f"let of {name}"] = {"find": "c", "let": {"a": expression}, "singleBatch": True}
    for name, pipeline in stages().items():
        rows[f"aggregate {name}"] = {"aggregate": "c", "pipeline": pipeline, "cursor": {}}
        rows[f"explain aggregate {name}"] = {"explain": {"aggregate": "c", "pipeline": pipeline, "cursor": {}}}
        rows[f"view of {name}"] = {"create": "view", "viewOn": "c", "pipeline": pipeline}
        rows[f"inner {name}"] = {
            "aggregate": "c",
            "pipeline": [{"$lookup": {"from": "c", "pipeline": pipeline, "as": "x"}}],
            "cursor": {},
        }
    for name, update in updates().items():
        rows[f"update {name}"] = {"update": "u", "updates": [{"q": {"_id": 1}, "u": update}]}
        rows[f"update upsert {name}"] = {
            "update": "u",
            "updates": [{"q": {"_id": {"$gt": 1_000_000}}, "u": update, "upsert": True}],
        }
        rows[f"findAndModify {name}"] = {"findAndModify": "u", "query": {"_id": 1}, "update": update, "new": True}
        rows[f"update many {name}"] = {"update": "u", "updates": [{"q": {}, "u": update, "multi": True}]}
    field = lambda at: f"f{at}"
    rows |= {
        "find projection": {"find": "c", "projection": fields(1), "singleBatch": True},
        "find projection out": {"find": "c", "projection": fields(0), "singleBatch": True},
        "find projection slices": {"find": "c", "projection": fields({"$slice": 1}), "singleBatch": True},
        "find projection elemMatch": {"find": "c", "projection": fields({"$elemMatch": {"a": 1}}), "singleBatch": True},
        "find projection elemMatch of many": {"find": "c", "projection": {"v": {"$elemMatch": fields(1)}}, "singleBatch": True},
        "find projection expressions": {"find": "c", "projection": fields({"$add": ["$n", 1]}), "singleBatch": True},
        "find sort": {"find": "c", "sort": fields(1), "singleBatch": True},
        "find hint": {"find": "c", "hint": fields(1)},
        "find min": {"find": "c", "min": fields(1), "hint": {"i": 1}},
        "find let": {"find": "c", "let": fields(1)},
        "find collation": {"find": "c", "collation": fields(1)},
        "find comment": {"find": "c", "comment": numbers()},
        "find unknown fields": {"find": "c", "*": fields(1, name=lambda at: f"x{at}")},
        "find readConcern": {"find": "c", "readConcern": fields(1)},
        "aggregate let": {"aggregate": "c", "pipeline": [], "cursor": {}, "let": fields({"$add": [1, 2]})},
        "aggregate hint": {"aggregate": "c", "pipeline": [], "cursor": {}, "hint": fields(1)},
        "aggregate documents": {"aggregate": 1, "pipeline": [{"$documents": many({"a": 1})}], "cursor": {}},
        "aggregate documents computed": {
            "aggregate": 1,
            "pipeline": [{"$documents": many({"a": {"$add": [1, 2]}})}],
            "cursor": {},
        },
        "distinct in": {"distinct": "c", "key": "n", "query": {"n": {"$in": numbers()}}},
        "distinct long key": {"distinct": "c", "key": ".".join(["a"] * 7_900_000)},
        "findAndModify fields": {"findAndModify": "u", "query": {"_id": 1}, "update": {"$set": {"a": 1}}, "fields": fields(1)},
        "findAndModify sort": {"findAndModify": "u", "query": {}, "sort": fields(1), "update": {"$set": {"a": 1}}},
        "findAndModify upsert": {"findAndModify": "u", "query": fields(1), "update": {"$set": {"zzz": 1}}, "upsert": True},
        "findAndModify arrayFilters": {
            "findAndModify": "u",
            "query": {},
            "update": {"$set": {"a": 1}},
            "arrayFilters": many({"e": 1}),
        },
        "arrayFilters many": {
            "update": "u",
            "updates": [
                {
                    "q": {},
                    "u": {"$set": fields(1, name=lambda at: f"v.$[e{at}]", bytes_max=7_000_000)},
                    "arrayFilters": many(lambda at: {f"e{at}": at}, bytes_max=8_900_000),
                }
            ],
        },
        "update let": {"update": "u", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}], "let": fields(1)},
        "update constants": {"update": "u", "updates": [{"q": {}, "u": [{"$set": {"a": 1}}], "c": fields(1)}]},
        "createIndexes many": {"createIndexes": "c", "indexes": many(lambda at: {"key": {f"z{at}": 1}, "name": f"z{at}"})},
        "createIndexes fields": {"createIndexes": "c", "indexes": [{"key": fields(1), "name": "z"}]},
        "createIndexes wildcardProjection": {
            "createIndexes": "c",
            "indexes": [{"key": {"$**": 1}, "name": "z", "wildcardProjection": fields(1)}],
        },
        "createIndexes wildcardProjection of 200,000 fields": {
            "createIndexes": "c",
            "indexes": [{"key": {"$**": 1}, "name": "z", "wildcardProjection": fields(1, 200_000)}],
        },
        "createIndexes long name": {"createIndexes": "c", "indexes": [{"key": {"z": 1}, "name": "z" * 15_000_000}]},
        "createIndexes long key": {"createIndexes": "c", "indexes": [{"key": {".".join(["a"] * 7_900_000): 1}, "name": "z"}]},
        "createIndexes options": {"createIndexes": "c", "indexes": [{"key": {"z": 1}, "name": "z", "storageEngine": fields({})}]},
        "create options": {"create": "y", "storageEngine": fields({})},
        "create unknown": {"create": "y", "*": fields(1, name=lambda at: f"x{at}")},
        "create clustered": {"create": "y", "clusteredIndex": fields(1)},
        "create validator": {"create": "y", "validator": fields(1)},
        "create long name": {"create": "y" * 15_000_000},
        "collMod": {"collMod": "c", "index": {"keyPattern": fields(1), "hidden": True}},
        "collMod view": {"collMod": "v1", "viewOn": "c", "pipeline": [{"$match": {"$or": many(lambda at: {"i": {"$gt": at}})}}]},
        "dropIndexes": {"dropIndexes": "c", "index": many(field)},
        "dropIndexes key": {"dropIndexes": "c", "index": fields(1)},
        "listCollections": {"listCollections": 1, "filter": {"$or": many(lambda at: {"name": f"n{at}"})}},
        "listCollections fields": {"listCollections": 1, "filter": fields(1)},
        "listDatabases": {"listDatabases": 1, "filter": {"name": {"$in": words()}}, "$db": "admin"},
        "listIndexes": {"listIndexes": "c", "cursor": fields(1)},
        "killCursors": {"killCursors": "c", "cursors": many(lambda at: 2**40 + at)},
        "endSessions": {"endSessions": many(lambda at: {"id": struct.pack("<QQ", at, 1)})},
        "refreshSessions": {"refreshSessions": many(lambda at: {"id": struct.pack("<QQ", at, 2)})},
        "killSessions": {"killSessions": many(lambda at: {"id": struct.pack("<QQ", at, 3)})},
        "killAllSessions": {"killAllSessions": many(lambda at: {"user": f"u{at}", "db": "a"})},
        "killAllSessionsByPattern": {
            "killAllSessionsByPattern": many(lambda at: {"lsid": {"id": struct.pack("<QQ", at, 1), "uid": b"x" * 32}})
        },
        "usersInfo": {"usersInfo": many(field)},
        "usersInfo filter": {"usersInfo": 1, "filter": fields(1)},
        "rolesInfo": {"rolesInfo": many(field)},
        "createUser roles": {"createUser": "u1", "pwd": "p", "roles": many("read")},
        "createUser custom": {"createUser": "u2", "pwd": "p", "roles": [], "customData": fields(1)},
        "createUser restrictions": {
            "createUser": "u3",
            "pwd": "p",
            "roles": [],
            "authenticationRestrictions": many({"clientSource": ["1.1.1.1"]}),
        },
        "createUser mechanisms": {"createUser": "u4", "pwd": "p", "roles": [], "mechanisms": many("SCRAM-SHA-256")},
        "createUser password": {"createUser": "u5", "pwd": "p" * 15_000_000, "roles": []},
        "createRole": {
            "createRole": "r1",
            "roles": [],
            "privileges": many(lambda at: {"resource": {"db": "a", "collection": f"c{at}"}, "actions": ["find"]}),
        },
        "createRole actions": {
            "createRole": "r2",
            "roles": [],
            "privileges": [{"resource": {"db": "a", "collection": "c"}, "actions": many("find")}],
        },
        "createRole roles": {"createRole": "r3", "roles": many("read"), "privileges": []},
        "grantRoles": {"grantRolesToUser": "u9", "roles": many("read")},
        "revokePrivileges": {
            "revokePrivilegesFromRole": "r9",
            "privileges": many(lambda at: {"resource": {"db": "a", "collection": f"c{at}"}, "actions": ["find"]}),
        },
        "setParameter": {"setParameter": 1, "*": fields(1, name=lambda at: f"x{at}"), "$db": "admin"},
        "getParameter": {"getParameter": 1, "*": fields(1, name=lambda at: f"x{at}"), "$db": "admin"},
        "planCacheSetFilter": {"planCacheSetFilter": "c", "query": {"n": 1}, "indexes": many(field)},
        "planCacheSetFilter query": {
            "planCacheSetFilter": "c",
            "query": {"$or": many(lambda at: {"i": {"$gt": at}})},
            "indexes": ["i_1"],
        },
        "planCacheClearFilters": {"planCacheClearFilters": "c", "query": {"n": {"$in": numbers()}}},
        "configureFailPoint": {"configureFailPoint": "failCommand", "mode": "alwaysOn", "data": fields(1), "$db": "admin"},
        "currentOp": {"currentOp": 1, "*": fields(1, name=lambda at: f"x{at}"), "$db": "admin"},
        "logApplicationMessage": {"logApplicationMessage": "x" * 15_000_000, "$db": "admin"},
        "dbHash": {"dbHash": 1, "collections": many(field)},
        "profile filter": {"profile": 0, "filter": fields(1)},
        "hello": {"hello": 1, "client": fields(1)},
        "hello awaits": {"hello": 1, "topologyVersion": fields(1), "maxAwaitTimeMS": 1},
        "saslStart": {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n" * 15_000_000, "$db": "admin"},
        "isMaster mechs": {"hello": 1, "saslSupportedMechs": "a." + "b" * 15_000_000},
        "renameCollection": {"renameCollection": "a." + "x" * 7_000_000, "to": "b." + "y" * 7_000_000, "$db": "admin"},
        "replSetInitiate": {"replSetInitiate": {"_id": "rs", "members": many({"_id": 1, "host": "h"})}, "$db": "admin"},
        "validate": {"validate": "c", "options": fields(1)},
        "collStats": {"collStats": "c" * 15_000_000},
        "setDefaultRWConcern": {"setDefaultRWConcern": 1, "defaultWriteConcern": fields(1), "$db": "admin"},
        "insert large": {"insert": "u", "documents": [fields(1, bytes_max=15_900_000)]},
        "insert body": {"insert": "u9", "documents": many({})},
        "insert ids": {"insert": "u9", "documents": many(lambda at: {"_id": at})},
        "lsid": {"ping": 1, "lsid": fields(1)},
        "getMore": {"getMore": 2**40, "collection": "x" * 15_000_000},
        "unknown command": {"x" * 15_000_000: 1},
    }
    rows |= long_values()
    large = SEQUENCE_BYTES_MAX
    rows |= {
        "insert 100,000": ({"insert": "i1"}, "documents", many(lambda at: {"x": at}, 100_000)),
        "insert 100,000 indexed": (
            {"insert": "keyed"},
            "documents",
            many(lambda at: {"a": [at, 1, 2], "b": at, "o": {"x": at, "y": "w"}}, 100_000, bytes_max=large),
        ),
        "insert 48 MB": ({"insert": "i2"}, "documents", many(lambda at: {"x": "y" * 400}, 100_000, bytes_max=large)),
        "insert keys of arrays": ({"insert": "keyed"}, "documents", many(lambda at: {"a": numbers(99_000)}, 40, bytes_max=large)),
        "insert keys of large arrays": (
            {"insert": "keyed"},
            "documents",
            many(lambda at: {"a": numbers(bytes_max=15_900_000)}, 3, bytes_max=large),
        ),
        "insert wildcard": (
            {"insert": "wild"},
            "documents",
            many(lambda at: fields(1, bytes_max=1_500_000), 30, bytes_max=large),
        ),
        "insert wildcard large": (
            {"insert": "wild"},
            "documents",
            many(lambda at: fields(1, bytes_max=15_900_000), 3, bytes_max=large),
        ),
        "insert wildcard arrays": (
            {"insert": "wild"},
            "documents",
            many(lambda at: {"a": many(lambda at: {"x": at}, bytes_max=15_900_000)}, 3, bytes_max=large),
        ),
        "insert hashed": (
            {"insert": "hashed"},
            "documents",
            many(lambda at: {"h": fields(1, bytes_max=15_800_000)}, 3, bytes_max=large),
        ),
        "insert collated": (
            {"insert": "collated"},
            "documents",
            many(lambda at: {"s": many(lambda at: f"Wört {at}", 90_000)}, 20, bytes_max=large),
        ),
        "insert duplicates": ({"insert": "u", "ordered": False}, "documents", many({"_id": 1}, 100_000)),
        "update 100,000": (
            {"update": "u"},
            "updates",
            many({"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}, 100_000, bytes_max=large),
        ),
        "update 100,000 scans": (
            {"update": "c"},
            "updates",
            many({"q": {"zz": 1}, "u": {"$inc": {"a": 1}}}, 100_000, bytes_max=large),
        ),
        "update failing": (
            {"update": "u", "ordered": False},
            "updates",
            many({"q": {"_id": 1}, "u": {"$x": 1}}, 100_000, bytes_max=large),
        ),
        "delete 100,000": ({"delete": "u"}, "deletes", many({"q": {"_id": -1}, "limit": 1}, 100_000, bytes_max=large)),
        "upsert 100,000": (
            {"update": "u2"},
            "updates",
            many(lambda at: {"q": {"_id": at}, "u": {"$set": {"a": 1}}, "upsert": True}, 100_000, bytes_max=large),
        ),
        "bulkWrite": (
            {"bulkWrite": 1, "nsInfo": [{"ns": "bench.b1"}], "$db": "admin"},
            "ops",
            many({"insert": 0, "document": {"x": 1}}, 100_000, bytes_max=large),
        ),
        "bulkWrite errors": (
            {"bulkWrite": 1, "nsInfo": [{"ns": "bench.u"}], "ordered": False, "$db": "admin"},
            "ops",
            many({"insert": 0, "document": {"_id": 1}}, 100_000, bytes_max=large),
        ),
        "bulkWrite namespaces": (
            {"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "$db": "admin"},
            "nsInfo",
            many(lambda at: {"ns": f"bench.n{at}"}, bytes_max=large),
        ),
        "find with a sequence": ({"find": "c"}, "filter", many({"a": 1}, bytes_max=large)),
        "unknown sequence": ({"ping": 1}, "rubbish", many({"a": 1}, bytes_max=large)),
    }
    return rows
