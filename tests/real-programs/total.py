import csv
import json
import sys

with open(sys.argv[1], newline="") as file:
    rows = list(csv.DictReader(file))
total = sum(int(row["count"]) * float(row["price"]) for row in rows)
print(json.dumps({"items": [row["item"] for row in rows], "total": total}))
