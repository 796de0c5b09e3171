{#- What is counted of the changelog rows that a query lands or shows, in that query itself: messages, rows of each kind, dead letters of each reason;
    in how many rows each part that a format may name should be (`expected`), and in how many it is (`found`); if there are waivers, dead letters of each
    reason that one of them waives (`waived`). One JSON text: Spark Connect hands on nested metrics without their names. -#}
{%- macro landed_counts(waivers=[]) -%}
{%- set change = "kind = 'row'" -%}
{%- set update = "kind = 'row' and op = 'update' and pair_id is null" -%}
{%- set parts = {
  'table_name': (change, 'table_name is not null'),
  'key': (change, 'key is not null'),
  'event_time': (change ~ " and op <> 'snapshot'", 'event_time is not null'),
  'images': (change, '(size(before) > 0 or size(after) > 0)'),
  'before': (update, 'size(before) > 0')} -%}
to_json(named_struct(
  'messages', count_if(seq.row = 0),
  'rows', named_struct({% for kind in ('row', 'ddl', 'control', 'dead_letter') %}{{ text(kind) }}, count_if(kind = {{ text(kind) }}){{ ', ' if not loop.last }}{% endfor %}),
  'reasons', approx_top_k(reason, 50, 1000),
{%- if waivers %}
  {#- Spark observes no expression of the time of a batch: a column of its rows has the day. #}
  'waived', approx_top_k(if({{ is_waived(waivers, 'landed_on') }}, reason, null), 50, 1000),
{%- endif %}
  'expected', named_struct({% for part, (where, _) in parts.items() %}{{ text(part) }}, count_if({{ where }}){{ ', ' if not loop.last }}{% endfor %}),
  'found', named_struct({% for part, (where, has) in parts.items() %}{{ text(part) }}, count_if({{ where }} and {{ has }}){{ ', ' if not loop.last }}{% endfor %})))
{%- endmacro -%}

{#- A row of a changelog that a batch has landed. -#}
{%- macro first_of_batch(changelog, batch) -%} select batch from {{ name(changelog) }} where batch = {{ batch }} limit 1 {%- endmacro -%}
