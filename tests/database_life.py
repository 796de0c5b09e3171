"""A random life of a database: what people and programs do to some tables, statement by statement."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from tests.live_tools import Told

# Table -> its columns, and its key.
TABLES = {
    "acc": (
        "id int primary key, version int default 0 not null, owner {text}, bal {number}(14,2), opened date,"
        " seen {moment}, doc {document}, big text"
    ),
    "mov": "acc int, n int, version int default 0 not null, amt {number}(12,3), memo {text}, primary key(acc, n)",
    "tag": "name varchar(20) primary key, version int default 0 not null, note {text}, size bigint",
    "label": "name varchar(20) primary key, version int default 0 not null, note {text}, size bigint",
}
KEYS = {"acc": "id", "mov": "acc, n", "tag": "name", "label": "name"}
# One statement of a table is one of these, as often as their numbers say; `rare` are those that change tables.
OFTEN = {
    "upsert": 8, "update": 4, "update_many": 1, "fill_big": 1, "delete": 3, "insert_again": 2, "insert_many": 1,
    "move_key": 2, "move_keys": 1, "swap_keys": 1, "rare": 2,
}  # fmt: skip
RARE = {
    "add_column": 6, "add_columns": 1, "drop_column": 3, "rename_column": 2, "add_again": 1, "set_default": 1,
    "truncate": 2, "create_again": 2, "tell_again": 3, "load": 3, "drop_both": 2, "swap_names": 2, "replace": 2,
    "rename_away": 2,
}  # fmt: skip
ADDITIONS = [
    "{text}",
    "int default 7",
    "{text} default 'd 0'",
    "{number}(9,3) default -1.5",
    "int not null default 3",
]


# What is run by itself, or what writes it once those before it have run: it depends on the columns that they leave.
Script = str | Callable[[], str]


class Life:
    """Gives what is done next, as a list of scripts."""

    def __init__(self, database: Told, seed: str) -> None:
        self.database, self.chance, self.count = database, Random(seed), 0

    def beginning(self) -> list[str]:
        created = [script for table in TABLES for script in self._created(table)]
        accounts = ", ".join(f"({n}, 'o{n}')" for n in range(1, 6))
        moves = ", ".join(f"({n}, {n}, {n}.5)" for n in range(1, 6))
        tags = "".join(
            f"insert into s.{table}(name, size) values ('t1', 1), ('t2', null);" for table in ("tag", "label")
        )
        rows = f"insert into s.acc(id, owner) values {accounts}; insert into s.mov(acc, n, amt) values {moves};"
        return [*created, rows + tags]

    def all_again(self) -> list[str]:
        """All rows are told again, with long values that a log leaves out as long as they do not change."""
        also = {"acc": ", big = replace(big, '', '')"}
        return ["".join(f"update s.{one} set version = version + 1{also.get(one, '')};" for one in TABLES)]

    def next(self) -> list[Script]:
        self.count += 1
        scripts = self._one()
        written = [script for script in scripts if isinstance(script, str)]
        # Where databases commit when a table is changed nothing is left to be rolled back.
        if self.chance.random() < 0.08 and (len(scripts) == 1 or not self.database.tells_statements):
            changes = "".join(written)
            if not self.database.tells_statements or not any(word in changes for word in ("alter", "table")):
                return [f"begin; {changes} rollback;"]
        if self.chance.random() < 0.05 and len(written) == len(scripts) == 1 and "table" not in written[0]:
            return [f"begin; {written[0]} {self.upsert('acc')} commit;"]
        return scripts

    def _one(self) -> list[Script]:
        table = self.chance.choice(["acc", "acc", "acc", "mov", "mov", *TABLES])
        script = self._drawn(OFTEN)(table)
        return [script] if isinstance(script, str) else script

    def _drawn(self, weights: dict[str, int]) -> Callable[[str], str | list[Script]]:
        kind = self.chance.choices([*weights], [*weights.values()])[0]
        method: Callable[[str], str | list[Script]] = getattr(self, kind)
        return method

    # --- values

    def number(self) -> int:
        return self.chance.randint(1, 12)

    def key(self, table: str) -> dict[str, str]:
        match table:
            case "acc":
                return {"id": str(self.number())}
            case "mov":
                return {"acc": str(self.number()), "n": str(self.chance.randint(1, 4))}
        return {"name": self.chance.choice(["'t1'", "'t2'", "'A b'", "'ä'", "'it''s'", "'null'", "'01'", "'😀'"])}

    def where(self, table: str) -> str:
        return " and ".join(f"{column} = {value}" for column, value in self.key(table).items())

    def values(self, table: str) -> dict[str, str]:
        """New values for some columns that are no part of a key."""
        n, chance = self.number(), self.chance
        text = chance.choice(["null", "'x'", "'it''s \"q\"'", "''", "'列 😀'", f"'{n}'", "'a\nb\tc'", "'null'"])
        amount = chance.choice(["0", "-0.01", "99999999.99", f"{n}.5", "null"])
        moment = chance.choice(["null", "'2026-01-01 00:00:00'", *self.database.moments])
        document = chance.choice(["null", '\'{"a": 1.50, "b": [1, null]}\'', "'[]'", "'\"t\"'", '\'{"ä": "1"}\''])
        day = chance.choice(["null", "'2024-02-29'", "'0001-01-01'", "'9999-12-31'"])
        own = {
            "acc": {"owner": text, "bal": amount, "seen": moment, "doc": document, "opened": day},
            "mov": {"amt": amount, "memo": text},
        }.get(table, {"note": text, "size": chance.choice(["null", "-9223372036854775808", "9007199254740993", "0"])})
        names = chance.sample([*own], chance.randint(1, len(own))) if chance.random() < 0.5 else [*own]
        added = self.added(table, kinds="ct")
        more = {chance.choice(added): chance.choice([f"'{n}'", "'70'"])} if added and chance.random() < 0.5 else {}
        return {**{name: own[name] for name in names}, **more}

    def changes(self, table: str) -> str:
        return ", ".join(f"{column} = {value}" for column, value in self.values(table).items())

    def added(self, table: str, kinds: str = "ctx") -> list[str]:
        """Columns that were added: any value of digits fits those whose name begins with c or t."""
        return [one for one in self.database.columns(table) if one[0] in kinds and one[1:].isdigit()]

    # --- rows

    def then_upsert(self, table: str) -> Script:
        return partial(self.upsert, table)

    def upsert(self, table: str) -> str:
        return self.database.upsert(table, KEYS[table], self.key(table) | self.values(table))

    def update(self, table: str) -> str:
        return f"update s.{table} set {self.changes(table)} where {self.where(table)};"

    def update_many(self, table: str) -> str:
        return self.chance.choice(
            [
                f"update s.acc set bal = bal + 1 where id % 3 = {self.number() % 3} and bal < 1000;",
                f"update s.{table} set {self.changes(table)};",
                f"update s.mov set memo = 'm{self.count}' where acc = {self.number()};",
            ]
        )

    def fill_big(self, _: str) -> str:
        return f"update s.acc set big = repeat(md5('{self.count}'), 100) where {self.where('acc')};"

    def delete(self, table: str) -> str:
        return f"delete from s.{table} where {self.where(table)};"

    def insert_again(self, table: str) -> str:
        values = self.key(table) | self.values(table)
        is_it = " and ".join(f"{column} = {values[column]}" for column in KEYS[table].split(", "))
        insert = f"insert into s.{table}({', '.join(values)}) values ({', '.join(values.values())});"
        both = f"delete from s.{table} where {is_it}; {insert}"
        return f"begin; {both} commit;" if self.chance.random() < 0.5 else both

    def insert_many(self, table: str) -> str:
        rows = {tuple(self.key(table).values()) for _ in range(4)}
        columns = ", ".join(self.key(table))
        values = ", ".join(f"({', '.join(row)})" for row in sorted(rows))
        return f"delete from s.{table} where {self.where(table)}; insert into s.{table}({columns}) values {values};"

    def move_key(self, table: str) -> str:
        """To a key that may be free."""
        column, value = self.chance.choice([*self.key(table).items()])
        also = f", {self.changes(table)}" if self.chance.random() < 0.3 else ""
        return f"update s.{table} set {column} = {value}{also} where {self.where(table)};"

    def move_keys(self, table: str) -> str:
        """All of them by one, so that each row takes the key that another one had."""
        column = {"acc": "id", "mov": "n"}.get(table)
        if column is None:
            return f"update s.{table} set name = concat(name, '+') where size is null;"
        step = self.chance.choice([1, -1])
        return self.database.in_order(f"update s.{table} set {column} = {column} + {step}", column, step)

    def swap_keys(self, table: str) -> str:
        """Two rows exchange their keys over a third one."""
        column, by = ("id", "id") if table == "acc" else ("n", "acc") if table == "mov" else ("name", "name")
        one, other = self.key(table)[column], self.key(table)[column]
        spare = "'spare'" if column == "name" else "-1"
        steps = [(one, spare), (other, one), (spare, other)]
        where = "" if by == column else f" and acc = {self.number()}"
        moves = [f"update s.{table} set {column} = {to} where {column} = {old}{where};" for old, to in steps]
        return f"begin; {' '.join(moves)} commit;"

    # --- tables

    def rare(self, table: str) -> str | list[Script]:
        """With a row behind it, which tells what columns a table has: a mirror has those that rows tell."""
        script = self._drawn(RARE)(table)
        if "alter" not in str(script):
            return script
        return [*([script] if isinstance(script, str) else script), self.then_upsert(table)]

    def _created(self, table: str) -> list[str]:
        after = self.database.after_creation.get(table, "").format(table=f"s.{table}")
        columns = TABLES[table].format(**self.database.types)
        return [f"create table s.{table}({columns});", *([after] if after else [])]

    def _addition(self) -> tuple[str, str]:
        """The name of a new column, and its definition."""
        if self.chance.random() < 0.3:
            return f"x{self.count}", self.chance.choice(self.database.additions)
        definition = self.chance.choice(ADDITIONS)
        return f"c{self.count}", definition.format(**self.database.types)

    def add_column(self, table: str) -> str:
        return f"alter table s.{table} add column {' '.join(self._addition())};"

    def add_columns(self, table: str) -> str:
        name, definition = self._addition()
        dropped = "".join(f", drop column {one}" for one in self.added(table)[:1])
        return f"alter table s.{table} add column {name} {definition}, add column t{self.count} int default 5{dropped};"

    def drop_column(self, table: str) -> str:
        added = self.added(table)
        return f"alter table s.{table} drop column {self.chance.choice(added)};" if added else self.add_column(table)

    def rename_column(self, table: str) -> str:
        added = self.added(table, "c")
        if not added:
            return self.add_column(table)
        return f"alter table s.{table} rename column {self.chance.choice(added)} to c{self.count};"

    def add_again(self, table: str) -> str | list[Script]:
        """A column of the same name, after some changes that are told without it."""
        added = self.added(table, "c")
        # Where statements are not told, nothing tells it from the one that was there.
        if not added or not self.database.tells_statements:
            return self.add_column(table)
        name = self.chance.choice(added)
        drop, add = (f"alter table s.{table} {what}" for what in (f"drop column {name};", f"add column {name} int;"))
        return [drop, partial(self.update, table), add]

    def set_default(self, table: str) -> str | list[Script]:
        """Of a column whose rows keep what they have."""
        added = self.added(table, "c")
        if not added:
            return self.add_column(table)
        name = self.chance.choice(added)
        return [f"alter table s.{table} alter column {name} set default '8';", self.then_upsert(table)]

    def truncate(self, table: str) -> str:
        return f"truncate table s.{table};"

    def create_again(self, table: str) -> list[Script]:
        return [*self._emptied(table), f"drop table s.{table};", *self._created(table), self.then_upsert(table)]

    def _emptied(self, *tables: str) -> list[str]:
        """Nobody is told that a table is gone where statements are not told."""
        return [] if self.database.tells_statements else [f"truncate table s.{table};" for table in tables]

    def drop_both(self, _: str) -> list[Script]:
        tables = self.chance.sample([*TABLES], 2)
        drop = f"drop table if exists s.{tables[0]}, s.nothing, s.{tables[1]};"
        created = [script for table in tables for script in self._created(table)]
        return [*self._emptied(*tables), drop, *created, self.then_upsert(tables[0])]

    def tell_again(self, _: str) -> list[Script]:
        return [*self.all_again()]

    def load(self, table: str) -> str:
        if not self.database.loads:
            return self.all_again()[0]
        return self.chance.choice(self.database.loads).format(table=table, nth=self.count)

    def swap_names(self, _: str) -> list[Script]:
        """Of two tables of one shape."""
        if not self.database.tells_statements:
            return [*self.all_again()]
        swap = "rename table s.tag to s.spare, s.label to s.tag, s.spare to s.label;"
        return [swap, self.then_upsert("tag"), self.then_upsert("label")]

    def replace(self, table: str) -> list[Script]:
        """As tools do that change tables: a copy takes the place of the table."""
        if not self.database.tells_statements:
            return [*self.all_again()]
        new, old, (name, definition) = f"s.{table}_new", f"s.{table}_old", self._addition()
        columns = ", ".join(f"`{column}`" for column in self.database.columns(table))
        return [
            f"create table {new} like s.{table};",
            f"alter table {new} add column {name} {definition};",
            f"insert into {new}({columns}) select {columns} from s.{table};",
            f"rename table s.{table} to {old}, {new} to s.{table};",
            f"drop table {old};",
        ]

    def rename_away(self, table: str) -> list[Script]:
        """And back, with a change in between."""
        if not self.database.tells_statements:
            return [*self.all_again()]
        away = f"alter table s.{table} rename to s.{table}_away;"
        change = f"update s.{table}_away set {self.changes(table)} where {self.where(table)};"
        return [away, change, f"rename table s.{table}_away to s.{table};", self.update(table)]
