{#- The table of a mirror that gets columns or wider types as it stands, before it takes in new changes. -#}

{#- The rows of which all changes must be looked at: those of which changes that were read tell the new columns, or list them; those with values that did not
    fit their type; those that are told in parts; and those that a statement may not come after. `placed` is the table that tells in the column `place` up to which place each row is known. -#}
{%- macro rows_looked_again(query, looks, table, placed, place) -%}
with
{{ told_of(query.mirror) }},

{{ keyed_of(query.mirror) }},
{{ step_of(query.steps[0], query) }}

{% for kind, what in looks -%}
{{ macro('again_' ~ kind)(query, what, table, placed, place) }}
{{ 'union\n' if not loop.last }}
{%- endfor %}
{%- endmacro -%}

{%- macro again_told(query, columns, table, placed, place) -%}
select row_key as _row_key from told_changes where exists({{ texts_of(columns) }}, c -> {{ macro('tells_' ~ query.mirror.ways.lists)() }})
{%- endmacro -%}
{%- macro again_unfit(query, columns, table, placed, place) -%}
select {{ key_of_own(query.mirror) }} from {{ table }} as own where exists({{ texts_of(columns) }}, c -> map_contains_key(own._unfit, c))
{%- endmacro -%}
{%- macro again_in_parts(query, what, table, placed, place) -%}
select {{ key_of_own(query.mirror) }} from {{ table }} as own where own._in_parts
{%- endmacro -%}
{%- macro again_unplaced(query, effect, table, placed, place) -%}
select {{ key_of_own(query.mirror) }} from {{ placed }} as own where not coalesce({{ comes_after_place(effect, 'own.' ~ place) }}, false)
{%- endmacro -%}

{%- macro texts_of(names) -%} cast(array({{ names | map('sql_text') | join(', ') }}) as array<string>) {%- endmacro -%}
{%- macro tells_images() -%} map_contains_key(told, c) {%- endmacro -%}
{%- macro tells_lists() -%} map_contains_key(told, c) or coalesce(not array_contains(unlisted, c), false) {%- endmacro -%}
{%- macro key_of_own(mirror) -%} struct({{ mirror.key_columns | each('key_column_of_own') | join(', ') }}) as _row_key {%- endmacro -%}
{%- macro key_column_of_own(column) -%} cast(own.{{ name(column.name) }} as {{ column.type }}) as {{ name(column.name) }} {%- endmacro -%}

{#- Whether a statement surely comes after the change with a place: it is of a later table of the mirror; or it was sent and came later, in the same load, and no
    numbers say otherwise. -#}
{%- macro comes_after_place(effect, place) -%}
{%- set row = effect.row -%}
{%- set numbers -%} cast(array({{ effect.position | join(', ') }}) as array<decimal(38,0)>) {%- endset -%}
{%- set came -%} arrival_text({{ given_instant(row.sent_at) }}, cast(array({{ row.arrival | join(', ') }}) as array<bigint>), 0, {{ given_text(row.log) }}) {%- endset -%}
{%- set numbered -%} place_text('', 0, {{ given_text(row.numbered_in) }}, {{ numbers }}, false, '') {%- endset -%}
split_part({{ place }}, ' ', 1) < sorted_number({{ effect.earlier }})
  or substring_index({{ place }}, ' ', 2) = concat_ws(' ', sorted_number({{ effect.rank }}), sorted_number({{ row.generation }}))
  and split_part({{ place }}, ' ', 8) <= split_part({{ came }}, ' ', 1)
  and (split_part({{ place }}, ' ', 9) < split_part({{ came }}, ' ', 2)
    or split_part({{ place }}, ' ', 8) < split_part({{ came }}, ' ', 1) and split_part({{ place }}, ' ', 11) <> split_part({{ came }}, ' ', 4))
  and (split_part({{ place }}, ' ', 5) = '-' or size({{ numbers }}) = 0
    or split_part({{ place }}, ' ', 5) = split_part({{ numbered }}, ' ', 3) and split_part({{ place }}, ' ', 6) < split_part({{ numbered }}, ' ', 4))
{%- endmacro -%}

{#- Whether messages list the columns of the table: all of them, or none. -#}
{%- macro lists_told(mirror) -%}
with
{{ told_of(mirror) }}
select coalesce(bool_or(unlisted is not null), false) as some_list, coalesce(bool_or(unlisted is null), false) as some_do_not from sent
{%- endmacro -%}

{#- One row with values that rows get, as if each was `told` them; of `untold` columns nothing is known. Statements that change tables cannot call functions. -#}
{%- macro values_told(columns, told, untold) -%}
select row, told, {{ texts_of(untold) }} as untold, coalesce(unfit_columns(told, {{ unfit_told(columns) }}), map()) as unfit
from (select struct({{ (columns | each('column_told', told) + ['null as `none of them`']) | join(', ') }}) as row, {{ given_map(told) }} as told)
{%- endmacro -%}
{%- macro column_told(column, told) -%} {{ typed(given_text(told[column.name]), column.type) }} as {{ name(column.name) }} {%- endmacro -%}
{%- macro unfit_told(columns) -%} cast(array({{ columns | each('unfit_column') | join(', ') }}) as array<string>) {%- endmacro -%}

{#- Gives rows of a table these values: `all`, or those that a `state` or a `history` has now. -#}
{%- macro columns_filled(query, table, columns, values, rows) -%}
merge into {{ table }} as own using {{ name(values) }} as new on {{ macro('rows_of_' ~ rows)() }}
when matched then update set
  {% for column in columns %}own.{{ name(column.name) }} = new.row.{{ name(column.name) }},
  {% endfor %}{{ macro('untold_of_' ~ query.shows)() }}own._unfit = get(filter(array(map_concat(map_filter(coalesce(own._unfit, map()), (c, v) -> not map_contains_key(new.told, c)), new.unfit)), m -> size(m) > 0), 0)
{%- endmacro -%}
{%- macro untold_of_state() -%}
own._untold = get(filter(array(array_except(array_union(coalesce(own._untold, array()), new.untold), map_keys(new.told))), c -> size(array_remove(c, '')) > 0), 0),
  {% endmacro -%}
{%- macro untold_of_history() -%} {%- endmacro -%}
{%- macro rows_of_all() -%} true {%- endmacro -%}
{%- macro rows_of_state() -%} true {%- endmacro -%}
{%- macro rows_of_history() -%} own.is_current {%- endmacro -%}

{#- New changes, decided, with the rows that must be looked at again besides. With `all` of a history, all rows that change are looked at again. -#}
{%- macro state_decided_with(decided, again, all) -%}
select if(again._row_key is null, decided._decision, 'again') as _decision, coalesce(decided._row_key, again._row_key) as _row_key, decided.* except (_decision, _row_key)
from {{ name(decided) }} as decided full join {{ name(again) }} as again on decided._row_key = again._row_key
{%- endmacro -%}
{%- macro history_decided_with(decided, again, all) -%}
select {{ all | lower }} or again._row_key is not null or decided.looks_again as looks_again, coalesce(decided.row_key, again._row_key) as row_key, decided.* except (looks_again, row_key)
from {{ name(decided) }} as decided full join {{ name(again) }} as again on decided.row_key = again._row_key
{%- endmacro -%}
