{#- Rows and their images: where they lie in a message, whether they are rows, what is no column. -#}

{#- Formats whose messages hold lists of rows --------------------------------------------------------------------------------------- -#}

{%- macro listed(plan) -%}
-- The rows of each row change, and the rows before an update.  [each, before, after]
listed as (
  select
    *,
    case verdict
      {%- for line in plan.rows %}
      when {{ text(line.verdict) }} then {{ first_rows(line.own.at) }}
      {%- endfor %} end as rows,
    {{ rows_before(plan) }} as rows_before
  from (
    -- A bare object counts as a list of one. Only row changes without the usual lists pay for this second look.
    select
      *,
      case when {{ has_odd_lists(plan) }} then named_struct(
        'objects', {{ unmarked_look(plan) if plan.exact else reread(plan, 'map<string,string>') }},
        'lists', {{ reread(plan, 'array<string>') }},
        'texts', {{ reread(plan, 'string') }}) end as look
    from judged
  )
),
{%- endmacro -%}

{%- macro rows_before(plan) -%}
{%- if plan.updates -%}
coalesce(case verdict
{%- for line in plan.updates %}
      when {{ text(line.verdict) }} then {{ first_rows(line.before.at) }}
{%- endfor %} end, array())
{%- else -%} cast(array() as array<map<string,string>>)
{%- endif -%}
{%- endmacro -%}

{#- The first of several lists that holds a row. -#}
{%- macro first_rows(paths) -%}
{%- if paths | length == 1 -%} {{ row_list(paths[0]) }}
{%- else -%} case{% for path in paths[:-1] %} when {{ holds_row(row_list(path)) }} then {{ row_list(path) }}{% endfor %} else {{ row_list(paths[-1]) }} end
{%- endif -%}
{%- endmacro -%}

{%- macro holds_row(rows) -%} exists({{ rows }}, r -> size(r) > 0) {%- endmacro -%}

{%- macro row_list(path) -%} coalesce({{ field(path) }}, array_compact(array({{ look('objects', path) }}))) {%- endmacro -%}

{%- macro look(kind, path) -%} look.{{ kind }}{% for part in path %}.{{ name(part) }}{% endfor %} {%- endmacro -%}

{#- Row changes without a list full of rows, and updates without one for the rows before. -#}
{%- macro has_odd_lists(plan) -%}
{%- for line in plan.rows -%}
verdict = {{ text(line.verdict) }} and not (
        {{- 'coalesce(' }}size({{ field(line.own.at[0]) }}) > 0 and forall({{ field(line.own.at[0]) }}, r -> size(r) > 0)
        {%- if line in plan.updates %} and size({{ field(line.before.at[0]) }}) > 0 and forall({{ field(line.before.at[0]) }}, r -> r is not null){% endif %}, false)){{ '
        or ' if not loop.last }}
{%- endfor -%}
{%- endmacro -%}

{%- macro reread(plan, type) -%} {{ reread_of(json(plan), plan, type) }} {%- endmacro -%}

{%- macro reread_of(json, plan, type) -%}
from_json({{ json }}, {{ text(field_type(plan.image_fields(type), 0) | replace('\n', ' ')) }}, {{ json_options() }})
{%- endmacro -%}

{#- A bare object may hold nested values, whose numbers need marks. -#}
{%- macro unmarked_look(plan) -%}
get(transform(
          array({{ reread_of(marked_fractions(), plan, 'map<string,string>') }}),
          look -> {{ unmarked_tree(plan.image_fields('map<string,string>'), 'look', 10) }}), 0)
{%- endmacro -%}

{#- A row change's image on one side. -#}
{%- macro sent(plan, side) -%}
{%- set own = plan.rows | selectattr('own_side', 'equalto', side) | map(attribute='verdict') | list -%}
{%- set other = plan.updates | map(attribute='verdict') | list if side == 'before' else [] -%}
case
      {%- if own %} when verdict {{ one_of(own) }} then row.rows{% endif %}
      {%- if other %} when verdict {{ one_of(other) }} then row.rows_before{% endif %} end
{%- endmacro -%}


{#- Formats with one row a message ------------------------------------------------------------------------------------------------------ -#}

{%- macro found(plan) -%}
-- The images of each row change.  [before, after]
found as (
  select
    *,
    {%- if plan.verdicts('after', 'patch') %}
    {{ removed(plan) }} as removed,
    {%- endif %}
    {{ found_on(plan, 'before') }} as found_before,
    {{ found_on(plan, 'after') }} as found_after
  from {% if plan.images %}(
    -- What stands in the place of an image, and is no object. Only row changes without their images pay for this second look.
    select
      *,
      case when {{ lacks_image(plan) }} then named_struct('texts', {{ reread(plan, 'string') }}) end as look
    from {{ 'told' if plan.text_images else 'judged' }}
  ){% else %}{{ 'told' if plan.text_images else 'named' if plan.sent_images else 'judged' }}{% endif %}
),
{%- endmacro -%}

{%- macro found_on(plan, side) -%}
{%- set lines = plan.rows | selectattr(side) | list -%}
{%- if lines -%}
case
      {%- for line in lines %}
      when verdict = {{ text(line.verdict) }} then {{ first_image(line[side], plan) }}
      {%- endfor %} end
{%- else -%} cast(null as map<string,string>) {%- endif -%}
{%- endmacro -%}

{%- macro first_image(image, plan) -%}
{%- if image.text -%} {{ name(plan.text_image(image).column) }}.values
{%- else -%}
{%- set found = [] -%}
{%- for path in image.at -%}{% do found.append(name(plan.image_at(path)) if plan.avro else field(path)) %}{%- endfor -%}
{%- if found | length == 1 -%} {{ found[0] }}
{%- else -%} case{% for one in found[:-1] %} when size({{ one }}) > 0 then {{ one }}{% endfor %} else {{ found[-1] }} end
{%- endif -%}
{%- endif -%}
{%- endmacro -%}

{%- macro removed(plan) -%}
case verdict
      {%- for line in plan.rows if line.verdict in plan.verdicts('after', 'patch') %} when {{ text(line.verdict) }} then {{ name(plan.text_image(line.after).column) }}.removed{% endfor %} end
{%- endmacro -%}

{%- macro lacks_image(plan) -%}
{%- for line in plan.rows if not line.own.text -%}
verdict = {{ text(line.verdict) }} and ({{ field(line.own.at[0]) }} is null{% if line in plan.updates and not line.before.text %} or {{ field(line.before.at[0]) }} is null{% endif %}){{ '
        or ' if not loop.last }}
{%- endfor -%}
{%- endmacro -%}


{#- Rows that are none ------------------------------------------------------------------------------------------------------------------- -#}

{%- macro bad_rows(plan) -%}
{%- if plan.lists -%} {{ bad_lists(plan) }} {%- else -%} {{ bad_images(plan) }} {%- endif -%}
{%- endmacro -%}

{%- macro without_rows(plan) -%}
{%- if plan.spec.columns.get('statement') %} if({{ given(plan.spec.columns.get('statement')) }} is not null, 'statement-without-rows', 'no-row-image') {%- else %} 'no-row-image' {%- endif -%}
{%- endmacro -%}

{%- macro bad_lists(plan) %}
      when look is not null and case verdict
        {%- for line in plan.rows %}
        when {{ text(line.verdict) }} then {% for path in line.own.at %}{{ is_no_row_list(path) }}{% if not loop.last %} or not coalesce({{ holds_row(row_list(path)) }}, false) and ({% endif %}{% endfor %}{{ ')' * (line.own.at | length - 1) }}
        {%- endfor %} end then 'row-not-an-object'
      when not coalesce({{ holds_row('rows') }}, false) then {{- without_rows(plan) }}
{%- for line in plan.updates %}
      when look is not null and verdict = {{ text(line.verdict) }} and ({{ is_no_list_before(line.before.at[0]) }}) then 'row-not-an-object'
{%- endfor %}
      when size(rows_before) > size(rows) then 'uneven-rows'
{%- endmacro -%}

{%- macro bad_images(plan) %}
{{- bad_records(plan) if plan.avro }}
{%- if plan.images %}
      when look is not null and case verdict
        {%- for line in plan.rows if not line.own.text %}
        when {{ text(line.verdict) }} then {{ is_no_image(line.own.at) }}{% if line in plan.updates and not line.before.text %} or {{ is_no_image(line.before.at) }}{% endif %}
        {%- endfor %} end then 'row-not-an-object'
{%- endif %}
{%- for line in plan.rows if line.own.text %}
      when verdict = {{ text(line.verdict) }} and {{ name(plan.text_image(line.own).column) }}.reason is not null then {{ name(plan.text_image(line.own).column) }}.reason
{%- endfor %}
{%- set patches = plan.verdicts('after', 'patch') %}
      when {{ ('not (verdict ' ~ one_of(patches) ~ ') and ') if patches }}not coalesce({{ is_row(plan) }}, false) then {{- without_rows(plan) }}
      {%- if patches %}
      when found_after is null and verdict {{ one_of(patches) }} then 'no-row-image'
      {%- endif %}
{%- endmacro -%}

{#- The image that makes a message a row change holds a column; what is laid over another may be empty. -#}
{%- macro is_row(plan) -%}
{%- set own = own_found(plan) -%}
size({{ own }}) > 0
        {%- if plan.spec.drop %} and (size({{ own }}) > {{ plan.spec.drop | length }} or size({{ clean(own, plan.spec) }}) > 0){% endif %}
        {%- if plan.overlays.after %} or verdict {{ one_of(plan.overlays.after) }} and found_after is not null and size(found_before) > 0{% endif %}
{%- endmacro -%}

{#- The image that makes a message a row change. -#}
{%- macro own_found(plan) -%}
{%- set before = plan.rows | selectattr('own_side', 'equalto', 'before') | map(attribute='verdict') | list -%}
{%- if not before -%} found_after
{%- elif before | length == plan.rows | length -%} found_before
{%- else -%} if(verdict {{ one_of(before) }}, found_before, found_after)
{%- endif -%}
{%- endmacro -%}

{#- There is something in the place of an image, and it is no object. -#}
{%- macro is_no_image(paths) -%}
{%- for path in paths -%}
{{ look('texts', path) }} is not null and {{ field(path) }} is null{% if not loop.last %} or not coalesce(size({{ field(path) }}) > 0, false) and ({% endif %}
{%- endfor -%}{{ ')' * (paths | length - 1) }}
{%- endmacro -%}

{#- There is something in place of a list of rows, or a null in the list. -#}
{%- macro is_no_list(path) -%}
{{ look('texts', path) }} is not null and {{ look('objects', path) }} is null and {{ field(path) }} is null
{%- endmacro -%}

{%- macro is_no_row_list(path) -%}
({{ is_no_list(path) }} or coalesce(exists({{ field(path) }}, r -> r is null), false))
{%- endmacro -%}

{#- An element of the list before an update may be null: then that row has no image there. Anything else that is no object is refused. -#}
{%- macro is_no_list_before(path) -%}
{{ is_no_list(path) }}
        or array_contains(transform({{ look('lists', path) }}, (r, i) -> r is not null and get({{ field(path) }}, i) is null), true)
{%- endmacro -%}


{#- Images --------------------------------------------------------------------------------------------------------------------------------- -#}

{%- macro clean(map, spec) -%}
{#- Of equal names in Avro the last counts already. -#}
{%- if spec.message.encoding == 'avro' and not spec.drop -%} {{ map }}
{%- else -%}
if(size(array_distinct(map_keys({{ map }}))) < size({{ map }}){% for dropped in spec.drop %} or map_contains_key({{ map }}, {{ text(dropped.name) }}){% endfor %},
      {{ 'map_filter(' if spec.drop }}map_from_entries(map_entries({{ map }})){% if spec.drop %}, (c, v) -> not ({{ is_dropped(spec) }})){% endif %}, {{ map }})
{%- endif -%}
{%- endmacro -%}

{%- macro is_dropped(spec) -%}
{%- set always = spec.drop | rejectattr('conditions') | map(attribute='name') | list -%}
{%- if always -%} c {{ one_of(always) }} {%- endif -%}
{%- for dropped in spec.drop if dropped.conditions -%}
{{ ' or ' if always or not loop.first }}c = {{ text(dropped.name) }} and coalesce({{ conditions(dropped) }}, false)
{%- endfor -%}
{%- endmacro -%}

{#- An image whose names are those of the types is clean, as the types are. -#}
{%- macro clean_image(map, plan) -%}
{%- set cleaned -%}
{%- if plan.avro and not plan.spec.drop -%} {{ map }} {%- elif plan.spec.types and plan.spec.types.at -%} if(map_keys({{ map }}) = map_keys(types), {{ map }}, {{ clean(map, plan.spec) }}) {%- else -%} {{ clean(map, plan.spec) }} {%- endif -%}
{%- endset -%}
{%- if plan.spec.not_sent -%} map_filter({{ cleaned }}, (c, v) -> coalesce(v not in ({{ plan.spec.not_sent | map('sql_text') | join(', ') }}), true)) {%- else -%} {{ cleaned }} {%- endif -%}
{%- endmacro -%}

{%- macro header_fields(tree, path, indent) -%}
{%- if tree -%}
named_struct(
{%- for part, branch in tree.items() %}
{{ ' ' * indent }}  {{ text(part) }}, {% if branch is string %}{{ path }}.{{ name(part) }}{% else %}{{ header_fields(branch, path ~ '.' ~ name(part), indent + 2) }}{% endif %}{{ ',' if not loop.last }}
{%- endfor -%}
)
{%- else -%} cast(null as string) {%- endif -%}
{%- endmacro -%}

{#- Members of a row that are no columns. -#}
{%- macro member_of_row(value) -%}
{%- set names = value | map(attribute='path') | map('last') | unique | list -%}
coalesce({% for n in names %}sent_after[{{ text(n) }}], sent_before[{{ text(n) }}]{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}

{%- macro with_texts(sent, side) -%}
if(coalesce(size(rewritten[{{ side }}]), 0) = 0, {{ sent }},
      map_concat({{ sent }}, map_from_entries(transform(rewritten[{{ side }}], v -> struct(v.column, coalesce(v.text, v.sent))))))
{%- endmacro -%}

{#- An empty image before a change tells nothing. What is laid over another image may be empty, but is laid over it only where it is there. -#}
{%- macro image(plan, own, other) -%}
{%- set read = 'read' if plan.readers else 'sent' -%}
{%- set verdicts = plan.overlays[own] -%}
{%- if own == 'before' and not verdicts -%} if(size({{ read }}_before) > 0, {{ read }}_before, null)
{%- elif verdicts -%} if(verdict {{ one_of(verdicts) }}{{ ' and ' ~ read ~ '_' ~ other ~ ' is not null' if own == 'after' }}, map_concat({{ read }}_{{ other }}, {{ read }}_{{ own }}), {{ read }}_{{ own }}) {%- else -%} {{ read }}_{{ own }} {%- endif -%}
{%- endmacro -%}

{#- How complete an image is: at best what the spec says. -#}
{%- macro completeness(plan, side) -%}
case when kind <> 'row' then null when {{ side }} is null then 'none'
    {%- for word in ('key', 'patch', 'partial') if plan.verdicts(side, word) %} when verdict {{ one_of(plan.verdicts(side, word)) }} then {{ text(word) }}{% endfor %}
    {%- if plan.may_lack_columns %} when lacks_{{ side }} then 'partial'{% endif %}
    {%- if side == 'before' and not plan.overlays.before %} when not map_keys(before) = map_keys(after) and exists(map_keys(after), c -> not map_contains_key(before, c)) then 'partial'{% endif %}
    {%- if side == 'after' and plan.overlays.after %} when verdict {{ one_of(plan.overlays.after) }} and before is null then 'partial'{% endif %} else 'full' end
{%- endmacro -%}

{#- Where one image is laid over the other, only the columns that it brought can differ. -#}
{%- macro changed(plan) -%}
{%- set columns = 'map_keys(sent_before)' if plan.overlays.before else 'map_keys(sent_after)' if plan.overlays.after else 'array_union(map_keys(before), map_keys(after))' -%}
{%- set differing -%} sort_array(filter({{ columns }}, c -> not (before[c] <=> after[c] and map_contains_key(before, c) = map_contains_key(after, c)))) {%- endset -%}
case
    {%- if plan.verdicts('after', 'patch') %} when kind = 'row' and verdict {{ one_of(plan.verdicts('after', 'patch')) }} then sort_array(array_union(map_keys(after), coalesce(removed, array()))){% endif %} when op = 'update' and before is not null and after is not null then
      {% if plan.overlays.before or plan.overlays.after %}{{ differing }}
      {%- else %}if(map_keys(before) = map_keys(after),
        sort_array(filter(map_keys(after), (c, i) -> not get(map_values(before), i) <=> get(map_values(after), i))),
        {{ differing }})
      {%- endif %} end
{%- endmacro -%}
