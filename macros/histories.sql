{#- Histories of mirrors: each row as it was from one change to the next. -#}

{%- macro mirror_history(query) -%}
-- {{ query.mirror.name }}_history: {{ query.mirror.tables | each('table_in_words') | join(', then ') }}, each row as it was from one change to the next
{% call macro('kept_' ~ query.mirror.ways.keeps)(query.mirror) -%}
{{ changes_of(query) }},

-- Each change tells single columns of a row, or begins it anew.
{{ versions_of(query, 'changes', 'alone') }}

select
  {{ shown_history(query.mirror) }}
from ended
where not removes
{%- endcall %}
{%- endmacro -%}

{#- The steps from changes to versions, which stand `alone`, or of which the first are laid `over` a row that the table has, `own_row`. What the versions of a
    row have in common that follow each other is its `life`: a table that is emptied ends them. -#}
{%- macro versions_of(query, changes, laid) -%}
{%- set life = columns_of_row(query.mirror) ~ also(query.emptied) -%}
{%- set over = 'own_row is not null and beginning = 0' -%}
begun as (
  select *, count_if(is_whole) over (partition by {{ life }} order by place) as beginning
  from {{ changes }}
),

{{ macro('versions_typed_after_' ~ query.ways.after)(life, macro('row_' ~ laid)(query.mirror, over)) }},

-- Changes that change nothing, such as those that are told twice, make no version.
compared as (
  select *, struct(removes, row, key_text(unfit) as unfit) as version
  from (select *, {{ macro('unfit_' ~ laid)(query.mirror, over) }} as unfit from typed)
),
versions as (
  select * except (valid_from), max({{ macro('begins_' ~ laid ~ '_after_' ~ query.ways.after)() }}) over (partition by {{ columns_of_row(query.mirror) }} order by place rows between unbounded preceding and current row) as valid_from
  from (
    select *, {{ macro('version_before_' ~ laid)(query.mirror, life) }} as version_before from compared
  )
  where not version <=> version_before
),

-- A version ends when the next one begins, and begins no earlier than the one before it.
ended as (
  select *,
    coalesce(
      min(valid_from) over (partition by {{ life }} order by place desc rows between unbounded preceding and 1 preceding)
      {%- for nth in query.emptied %},
      if({{ nth }} is null, null, greatest(emptied_at, valid_from))
      {%- endfor %}) as valid_to,
    row_number() over (partition by {{ life }} order by place desc) = 1{% for nth in query.emptied %} and {{ nth }} is null{% endfor %} as is_current
  from versions
)
{%- endmacro -%}

{%- macro versions_typed_after_changes(life, row) -%} {{ versions_typed('begun', 'told', 'map_concat(image, one)', life, row) }} {%- endmacro -%}
{%- macro versions_typed_after_statements(life, row) -%}
-- The statements after each change and before the next one.
followed as (
  select *, array_except(later, coalesce(lead(later) over (partition by {{ life }} order by place), array())) as followed_by from begun
),

{{ versions_typed('followed', 'struct(told, followed_by)', rewritten('map_concat(image, one.told)', 'one.followed_by', 'effects'), life, row) }}
{%- endmacro -%}
{%- macro versions_typed(reads, told, image, life, row) -%}
-- What is known of a row after each change, typed. A statement changes the version that there is, and begins none.
typed as (
  select *, {{ row }} as row
  from (
    select * except (told),
      reduce(
        collect_list({{ told }}) over (
          partition by {{ life }}, beginning order by place rows between unbounded preceding and current row),
        cast(map() as map<string,string>), (image, one) -> {{ image }}) as told
    from {{ reads }}
  )
)
{%- endmacro -%}

{#- When a version begins at the earliest: when its change was made, when the table was emptied before it, when the version that the table has began. -#}
{%- macro begins_alone_after_changes() -%} valid_from {%- endmacro -%}
{%- macro begins_alone_after_statements() -%} greatest(valid_from, {{ emptied_before() }}) {%- endmacro -%}
{%- macro begins_over_after_changes() -%} greatest(valid_from, own_begins) {%- endmacro -%}
{%- macro begins_over_after_statements() -%} greatest(valid_from, {{ emptied_before() }}, own_begins) {%- endmacro -%}
{%- macro emptied_before() -%}
array_max(transform(filter(effects, e -> e.empties and e.rank = rank and (emptied_nth is null or e.nth < emptied_nth)), e -> e.at))
{%- endmacro -%}

{%- macro version_before_alone(mirror, life) -%} lag(version) over (partition by {{ life }} order by place) {%- endmacro -%}
{%- macro version_before_over(mirror, life) -%}
coalesce({{ version_before_alone(mirror, life) }}, if(own_row is null, null, struct(
      false as removes,
      struct({% for column in mirror.columns %}own_row.{{ name(column.name) }} as {{ name(column.name) }}{{ ', ' if not loop.last }}{% endfor %}) as row,
      key_text(own_row._unfit) as unfit)))
{%- endmacro -%}

{%- macro shown_history(mirror) -%}
{{ columns_shown(mirror, ['valid_from', 'valid_to', 'is_current', 'op', 'changed_at as _changed_at', 'place as _seq', 'source as _source', 'unfit as _unfit']) }}
{%- endmacro -%}


{#- A history that takes in new changes. Beside its table is one of all keys, with the place up to which their changes are known. It is written first: after
    a run that dies between both, changes are not newer than what is known, so that all changes of these keys are looked at. -#}

{#- All versions of the rows, also those that the table is not to have; or only of the keys that it decides to look at again. -#}
{%- macro history_whole(query) -%} {{ history_of(query, 'changes') }} {%- endmacro -%}
{%- macro history_again(query, decided) -%}
{{ history_of(query, 'changes left semi join ' ~ name(decided) ~ ' as one on changes.row_key = one.row_key and one.looks_again') }}
{%- endmacro -%}
{%- macro history_of(query, wanted) -%}
{%- set known = macro('known_after_' ~ query.ways.after) -%}
{{ changes_of(query) }},

wanted as (
  select changes.*, max({{ known('place') }}) over (partition by {{ columns_of_row(query.mirror) }}) as known_until,
    max_by({{ known('changed_at') }}, place) over (partition by {{ columns_of_row(query.mirror) }}) as known_at
  from {{ wanted }}
),

{{ versions_of(query, 'wanted', 'alone') }}

{{ all_ended(query.mirror) }}
{%- endmacro -%}
{%- macro known_after_changes(value) -%} {{ value }} {%- endmacro -%}
{%- macro known_after_statements(value) -%} if(emptied_nth is null, {{ value }}, null) {%- endmacro -%}

{#- Versions with all columns of the history, and whether it is not to have them. -#}
{%- macro all_ended(mirror) -%}
select *, _removes or _is_left_out as _is_gone
from (
  select *, not _removes and not {{ macro('is_kept_' ~ mirror.ways.keeps)(mirror) }} as _is_left_out
  from (
    select row_key as _row_key, place as _place, known_until as _known_until, known_at as _known_at, removes as _removes, {{ shown_history(mirror) }}
    from ended
  )
)
{%- endmacro -%}

{#- The table of all keys: up to where each is known, and whether `where` leaves out what it is now. -#}
{%- macro history_beside(query, whole) -%}
select {{ key_columns_of(query.mirror, '_row_key') }}, any_value(_known_until) as _known_until, any_value(_known_at) as _known_at, coalesce(max_by(_is_left_out, _place), false) as _left_out
from {{ name(whole) }}
group by _row_key
{%- endmacro -%}

{#- The new changes, with what the table has of their row, and whether all changes of the row must be looked at again: if not all of the new ones come after
    those that are known, if they tell columns of a row that the table does not have, and if they begin before an old version has ended, or nobody knows when it
    did. `new` is the query of the new changes alone. -#}
{%- macro history_decided(new, table, known) -%}
{{ changes_of(new) }},

of_one_row as (
  select *,
    min(place) over row_of_change as first, max(place) over row_of_change as known_until, max_by(changed_at, place) over row_of_change as known_at,
    min_by(place, arrived) over row_of_change as first_arrived, min(if(numbered_in is null, changed_at, null)) over row_of_change as goes_back_to,
    min_by(is_whole, place) over row_of_change as begins_whole, min(valid_from) over row_of_change as row_begins
    {%- for nth in new.emptied %},
    bool_or({{ nth }} is not null) over row_of_change as is_emptied
    {%- endfor %}
  from changes
  window row_of_change as (partition by {{ columns_of_row(new.mirror) }})
),

looked_up as (
  select one.* except (place, known_until), known._known_until, known._left_out as left_out, own.own_row, own.own_begins,
    {{ place_after('one.place', 'one.first_arrived', 'known._known_until') }} as place,
    {{ place_after('one.known_until', 'one.first_arrived', 'known._known_until') }} as known_until,
    is_in_doubt(one.first_arrived, one.known_until, one.goes_back_to, known._known_until, known._known_at)
      or {{ place_after('one.first', 'one.first_arrived', 'known._known_until') }} <= known._known_until
      or (known._left_out and (not one.begins_whole or one.row_begins < known._known_at)){% for _ in new.emptied %} or one.is_emptied{% endfor %} as looks_again
  from of_one_row as one
  left join {{ known }} as known on {{ key_matches(new, 'known', 'one.row_key') }}
  left join (
    select
      own_key, any_value(version) filter (where version.is_current) as own_row,
      max(coalesce(version.valid_to, version.valid_from)) as own_begins
    from (select struct({{ key_columns_of(new.mirror, 'own') }}) as own_key, struct(own.*) as version from {{ table }} as own where {{ in_bounds(new, 'own') }})
    group by own_key
  ) as own on own.own_key = one.row_key
)

select * except (first, first_arrived, goes_back_to, begins_whole, row_begins, _known_until, looks_again{% for _ in new.emptied %}, is_emptied{% endfor %}), coalesce(looks_again, false) as looks_again
from looked_up
{%- endmacro -%}

{#- What is counted of the changes: all change rows that are to be remembered. -#}
{%- macro history_decisions() -%}
to_json(struct(count(*) as changed, count_if(looks_again) as again, count(*) as beside))
{%- endmacro -%}

{#- A row for each key, which ends what the table has of it, and one for each new version. -#}
{%- macro history_changed(query, decided, again) -%}
with
new_changes as (
  select * except (looks_again, left_out) from {{ name(decided) }} where not looks_again
),
{{ versions_of(query, 'new_changes', 'over') }},
added as (
  {{ all_ended(query.mirror) | indent(2) }}
)
{%- for view in again %},
again as (
  {{ history_again(query, view) | indent(2) }}
)
{%- endfor %},
all_versions as (
  select *, false as _again from added
  {%- for _ in again %}
  union all
  select *, true as _again from again
  {%- endfor %}
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
select _row_key, false, _again, null, null, null, null, null, struct({{ query.columns | map('name') | join(', ') }})
from all_versions
where not _is_gone
{%- endmacro -%}

{%- macro history_beside_written(query, known, changed) -%}
merge into {{ known }} as known using (select * from {{ name(changed) }} where _ends) as new
on {{ key_matches(query, 'known', 'new._row_key') }}
when matched then update set known._known_until = new._known_until, known._known_at = new._known_at, known._left_out = new._left_out
when not matched then insert ({{ query.mirror.key | map('name') | join(', ') }}, _known_until, _known_at, _left_out)
  values ({{ key_columns_of(query.mirror, 'new._row_key') }}, new._known_until, new._known_at, new._left_out)
{%- endmacro -%}

{%- macro history_merged(query, table, changed) -%}
merge into {{ table }} as own using {{ name(changed) }} as new
on new._ends and (new._again or own.is_current) and {{ key_matches(query, 'own', 'new._row_key') }}
when matched and new._again then delete
when matched and new._has_versions then update set own.valid_to = new._begins, own.is_current = false
when not matched and not new._ends then insert ({{ query.columns | map('name') | join(', ') }})
  values ({{ query.columns | each('column_of', 'new._version') | join(', ') }})
{%- endmacro -%}
