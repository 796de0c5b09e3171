{#- Histories of mirrors: each row as it was from one change to the next. -#}

{#- With a `share` less than 1 only some of all keys. -#}
{%- macro mirror_history(mirror, share=1, found={}) -%}
-- {{ mirror.name }}_history: {{ tables_of(mirror) }}, each row as it was from one change to the next
{{ where_begins(mirror) }}with
{{ changes_of(mirror, share, found) }},

-- Each change tells single columns of a row, or begins it anew.
{{ versions_of(mirror, 'changes', found) }}

select
  {{ shown_history(mirror) }}
from ended
where not removes
{{- where_ends(mirror) }}
{%- endmacro -%}

{#- What the versions of a row have in common that follow each other: a table that is emptied ends them. -#}
{%- macro life(mirror, found) -%} {{ columns_of_row(mirror) }}{{ ', emptied_nth' if has_statements(found) }} {%- endmacro -%}

{#- The steps from changes to versions. `over` is the condition under which the first of them are laid over a row that the table has, `own_row`. -#}
{%- macro versions_of(mirror, changes, found, over='') -%}
{%- set life = life(mirror, found) -%}
begun as (
  select *, count_if(is_whole) over (partition by {{ life }} order by place) as beginning
  from {{ changes }}
),
{%- if has_statements(found) %}

-- The statements after each change and before the next one.
followed as (
  select *, array_except(later, coalesce(lead(later) over (partition by {{ life }} order by place), array())) as followed_by from begun
),
{%- endif %}

-- What is known of a row after each change, typed. A statement changes the version that there is, and begins none.
typed as (
  select *, {{ typed_row(mirror, 'row_key', over) }} as row
  from (
    select * except (told),
      reduce(
        collect_list({{ 'struct(told, followed_by)' if has_statements(found) else 'told' }}) over (
          partition by {{ life }}, beginning order by place rows between unbounded preceding and current row),
        cast(map() as map<string,string>), (image, one) -> {{ rewritten('map_concat(image, one.told)', 'one.followed_by', 'effects') if has_statements(found) else 'map_concat(image, one)' }}) as told
    from {{ 'followed' if has_statements(found) else 'begun' }}
  )
),

-- Changes that change nothing, such as those that are told twice, make no version.
compared as (
  select *, struct(removes, row, key_text(unfit) as unfit) as version
  from (select *, {{ unfit(mirror, over) }} as unfit from typed)
),
versions as (
  select * except (valid_from), max({{ begins_at(found, over) }}) over (partition by {{ columns_of_row(mirror) }} order by place rows between unbounded preceding and current row) as valid_from
  from (
    select *, {{ version_before(mirror, life, over) }} as version_before from compared
  )
  where not version <=> version_before
),

-- A version ends when the next one begins, and begins no earlier than the one before it.
ended as (
  select *,
    coalesce(
      min(valid_from) over (partition by {{ life }} order by place desc rows between unbounded preceding and 1 preceding)
      {%- if has_statements(found) %},
      if(emptied_nth is null, null, greatest(emptied_at, valid_from))
      {%- endif %}) as valid_to,
    row_number() over (partition by {{ life }} order by place desc) = 1{{ ' and emptied_nth is null' if has_statements(found) }} as is_current
  from versions
)
{%- endmacro -%}

{#- When a version begins at the earliest: when its change was made, when the table was emptied before it, when the version that the table has began. -#}
{%- macro begins_at(found, over) -%}
{%- set emptied = 'array_max(transform(filter(effects, e -> e.empties and e.rank = rank and (emptied_nth is null or e.nth < emptied_nth)), e -> e.at))' -%}
{%- set others = ([emptied] if has_statements(found) else []) + (['own_begins'] if over else []) -%}
{{ 'greatest(valid_from, ' ~ others | join(', ') ~ ')' if others else 'valid_from' }}
{%- endmacro -%}

{%- macro version_before(mirror, life, over) -%}
{%- set before = 'lag(version) over (partition by ' ~ life ~ ' order by place)' -%}
{%- if over -%}
coalesce({{ before }}, if(own_row is null, null, struct(
      false as removes,
      struct({% for column in mirror.columns %}own_row.{{ name(column.name) }} as {{ name(column.name) }}{{ ', ' if not loop.last }}{% endfor %}) as row,
      key_text(own_row._unfit) as unfit)))
{%- else -%} {{ before }}
{%- endif -%}
{%- endmacro -%}

{%- macro shown_history(mirror) -%}
{{ columns_shown(mirror, ['valid_from', 'valid_to', 'is_current', 'op', 'changed_at as _changed_at', 'place as _seq', 'source as _source', 'unfit as _unfit']) }}
{%- endmacro -%}


{#- A history that takes in new changes. Beside its table is one of all keys, with the place up to which their changes are known. It is written first: after
    a run that dies between both, changes are not newer than what is known, so that all changes of these keys are looked at. -#}

{#- All versions of the rows, also those that the table is not to have. With `only`, of the keys that it decides to look at again. -#}
{%- macro history_whole(mirror, found, only='') -%}
with
{{ changes_of(mirror, found=found) }},

wanted as (
  select changes.*, max({{ 'if(emptied_nth is null, place, null)' if has_statements(found) else 'place' }}) over (partition by {{ columns_of_row(mirror) }}) as known_until,
    max_by({{ 'if(emptied_nth is null, changed_at, null)' if has_statements(found) else 'changed_at' }}, place) over (partition by {{ columns_of_row(mirror) }}) as known_at
  from changes{% if only %} left semi join {{ name(only) }} as one on changes.row_key = one.row_key and one.looks_again{% endif %}

),

{{ versions_of(mirror, 'wanted', found) }}

{{ all_ended(mirror) }}
{%- endmacro -%}

{#- Versions with all columns of the history, and whether it is not to have them. -#}
{%- macro all_ended(mirror) -%}
select *, _removes or _is_left_out as _is_gone
from (
  select *, not _removes and not {{ is_kept(mirror) }} as _is_left_out
  from (
    select row_key as _row_key, place as _place, known_until as _known_until, known_at as _known_at, removes as _removes, {{ shown_history(mirror) }}
    from ended
  )
)
{%- endmacro -%}

{#- The table of all keys: up to where each is known, and whether `where` leaves out what it is now. -#}
{%- macro history_beside(mirror, whole) -%}
select {{ key_columns_of(mirror, '_row_key') }}, any_value(_known_until) as _known_until, any_value(_known_at) as _known_at, coalesce(max_by(_is_left_out, _place), false) as _left_out
from {{ name(whole) }}
group by _row_key
{%- endmacro -%}

{%- macro history_rows(mirror, whole) -%}
select {{ mirror.history_columns | map('name') | join(', ') }} from {{ name(whole) }} where not _is_gone
{%- endmacro -%}

{#- The new changes, with what the table has of their row, and whether all changes of the row must be looked at again: if not all of the new ones come after
    those that are known, if they tell columns of a row that the table does not have, and if they begin before an old version has ended, or nobody knows when it
    did. `new` is the mirror as it reads only the new changes. -#}
{%- macro history_decided(mirror, new, table, known, found) -%}
with
{{ changes_of(new, found=found) }},

of_one_row as (
  select *,
    min(place) over row_of_change as first, max(place) over row_of_change as known_until, max_by(changed_at, place) over row_of_change as known_at,
    min_by(place, arrived) over row_of_change as first_arrived, min(if(numbered_in is null, changed_at, null)) over row_of_change as goes_back_to,
    min_by(is_whole, place) over row_of_change as begins_whole, min(valid_from) over row_of_change as row_begins
    {%- if has_statements(found) %},
    bool_or(emptied_nth is not null) over row_of_change as is_emptied
    {%- endif %}
  from changes
  window row_of_change as (partition by {{ columns_of_row(mirror) }})
),

looked_up as (
  select one.* except (place, known_until), known._known_until, known._left_out as left_out, own.own_row, own.own_begins,
    {{ place_after('one.place', 'one.first_arrived', 'known._known_until') }} as place,
    {{ place_after('one.known_until', 'one.first_arrived', 'known._known_until') }} as known_until,
    is_in_doubt(one.first_arrived, one.known_until, one.goes_back_to, known._known_until, known._known_at)
      or {{ place_after('one.first', 'one.first_arrived', 'known._known_until') }} <= known._known_until
      or (known._left_out and (not one.begins_whole or one.row_begins < known._known_at)){{ ' or one.is_emptied' if has_statements(found) }} as looks_again
  from of_one_row as one
  left join {{ known }} as known on {{ key_matches(mirror, 'known', found, 'one.row_key') }}
  left join (
    select
      own_key, any_value(version) filter (where version.is_current) as own_row,
      max(coalesce(version.valid_to, version.valid_from)) as own_begins
    from (select struct({{ key_columns_of(mirror, 'own') }}) as own_key, struct(own.*) as version from {{ table }} as own where {{ in_bounds(mirror, 'own', found) }})
    group by own_key
  ) as own on own.own_key = one.row_key
)

select * except (first, first_arrived, goes_back_to, begins_whole, row_begins, _known_until, looks_again{{ ', is_emptied' if has_statements(found) }}), coalesce(looks_again, false) as looks_again
from looked_up
{%- endmacro -%}

{#- `beside`: how many of the rows are to be remembered: all. -#}
{%- macro history_decisions(decided) -%}
select count(*) as changed, count_if(looks_again) as again, count(*) as beside
from (select row_key, any_value(looks_again) as looks_again from {{ name(decided) }} group by row_key)
{%- endmacro -%}

{#- A row for each key, which ends what the table has of it, and one for each new version. -#}
{%- macro history_changed(mirror, decided, looks_again, found) -%}
with
new_changes as (
  select * except (looks_again, left_out) from {{ name(decided) }} where not looks_again
),
{{ versions_of(mirror, 'new_changes', found, 'own_row is not null and beginning = 0') }},
added as (
  {{ all_ended(mirror) | indent(2) }}
)
{%- if looks_again %},
again as (
  {{ history_whole(mirror, found, decided) | indent(2) }}
)
{%- endif %},
all_versions as (
  select *, false as _again from added
  {%- if looks_again %}
  union all
  select *, true as _again from again
  {%- endif %}
)

select one.row_key as _row_key, true as _ends, one.looks_again as _again, coalesce(versions._known_until, one.known_until) as _known_until, coalesce(versions._known_at, one.known_at) as _known_at,
  coalesce(versions.is_left_out, one.left_out, false) as _left_out, versions.begins as _begins, versions.known_key is not null as _has_versions, null as _version
from (
  select row_key, any_value(looks_again) as looks_again, any_value(left_out) as left_out, any_value(known_until) as known_until, any_value(known_at) as known_at from {{ name(decided) }}
  group by row_key
) as one
left join (
  select _row_key as known_key, any_value(_known_until) as _known_until, any_value(_known_at) as _known_at, max_by(_is_left_out, _place) as is_left_out, min(valid_from) as begins
  from all_versions
  group by _row_key
) as versions on one.row_key = versions.known_key
union all
select _row_key, false, _again, null, null, null, null, null, struct({{ mirror.history_columns | map('name') | join(', ') }})
from all_versions
where not _is_gone
{%- endmacro -%}

{%- macro history_beside_written(mirror, known, changed, bounds) -%}
merge into {{ known }} as known using (select * from {{ name(changed) }} where _ends) as new
on {{ key_matches(mirror, 'known', bounds, 'new._row_key') }}
when matched then update set known._known_until = new._known_until, known._known_at = new._known_at, known._left_out = new._left_out
when not matched then insert ({{ mirror.key | map('name') | join(', ') }}, _known_until, _known_at, _left_out)
  values ({{ key_columns_of(mirror, 'new._row_key') }}, new._known_until, new._known_at, new._left_out)
{%- endmacro -%}

{%- macro history_merged(mirror, table, changed, bounds) -%}
{%- set columns = mirror.history_columns -%}
merge into {{ table }} as own using {{ name(changed) }} as new
on new._ends and (new._again or own.is_current) and {{ key_matches(mirror, 'own', bounds, 'new._row_key') }}
when matched and new._again then delete
when matched and new._has_versions then update set own.valid_to = new._begins, own.is_current = false
when not matched and not new._ends then insert ({{ columns | map('name') | join(', ') }})
  values ({% for column in columns %}new._version.{{ name(column) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}
