{#- Rows and their images: where they lie in a message, whether they are rows, what is not a column. -#}

{#- Formats whose messages hold lists of rows --------------------------------------------------------------------------------------- -#}

{%- macro row_lists(plan) -%}
-- The rows of each row change, and the rows before an update.  [each, before, after]
row_lists as (
  select
    *,
    case verdict
      {%- for change in plan.images.changes %}
      when {{ text(change.verdict) }} then {{ first_list_with_row(change.own.paths) }}
      {%- endfor %} end as rows,
    {{ rows_before(plan.images.updates) }} as rows_before
  from (
    -- A bare object counts as a list of one. Only row changes without the usual lists need this second reading.
    select
      *,
      case when {{ has_odd_lists(plan.images.changes) }} then named_struct(
        'objects', {{ reread_without_marks(plan) if plan.exact else reread(plan, 'map<string,string>') }},
        'lists', {{ reread(plan, 'array<string>') }},
        'texts', {{ reread(plan, 'string') }}) end as reread
    from classified
  )
),
{%- endmacro -%}

{%- macro rows_before(updates) -%}
{%- if updates -%}
coalesce(case verdict
{%- for change in updates %}
      when {{ text(change.verdict) }} then {{ first_list_with_row(change.before.paths) }}
{%- endfor %} end, array())
{%- else -%} cast(array() as array<map<string,string>>)
{%- endif -%}
{%- endmacro -%}

{#- The first of several lists that holds a row; if none does, the last. -#}
{%- macro first_list_with_row(paths) -%}
{%- if paths | length == 1 -%} {{ row_list(paths[0]) }}
{%- else -%} case{% for path in paths %} {% if not loop.last %}when {{ holds_row(row_list(path)) }} then{% else %}else{% endif %} {{ row_list(path) }}{% endfor %} end
{%- endif -%}
{%- endmacro -%}

{%- macro holds_row(rows) -%} exists({{ rows }}, r -> size(r) > 0) {%- endmacro -%}

{%- macro row_list(path) -%} coalesce({{ field(path) }}, array_compact(array({{ reread_at('objects', path) }}))) {%- endmacro -%}

{#- What the second reading found at a path: objects, lists of texts, or texts. -#}
{%- macro reread_at(kind, path) -%} reread.{{ kind }}{% for part in path %}.{{ name(part) }}{% endfor %} {%- endmacro -%}

{#- Row changes without a list full of rows, and updates without one for the rows before. -#}
{%- macro has_odd_lists(changes) -%}
{%- for change in changes -%}
verdict = {{ text(change.verdict) }} and not (
        {{- 'coalesce(' }}size({{ field(change.own.paths[0]) }}) > 0 and forall({{ field(change.own.paths[0]) }}, r -> size(r) > 0)
        {%- if change.before %} and size({{ field(change.before.paths[0]) }}) > 0 and forall({{ field(change.before.paths[0]) }}, r -> r is not null){% endif %}, false)){{ '
        or ' if not loop.last }}
{%- endfor -%}
{%- endmacro -%}

{%- macro reread(plan, type) -%} {{ reread_from(json(plan), plan, type) }} {%- endmacro -%}

{%- macro reread_from(json, plan, type) -%}
from_json({{ json }}, {{ text(field_type(plan.images.reread[type], 0, ' ')) }}, {{ json_options() }})
{%- endmacro -%}

{#- A bare object may hold nested values, whose numbers need marks while they are read. -#}
{%- macro reread_without_marks(plan) -%}
get(transform(
          array({{ reread_from(marked_fractions(), plan, 'map<string,string>') }}),
          reread -> {{ unmarked_tree(plan.images.reread['map<string,string>'], 'reread', 10) }}), 0)
{%- endmacro -%}

{#- The image of one row on each side. -#}
{%- macro sent_before(images) -%}
case
      {%- if images.before.own %} when verdict {{ one_of(images.before.own) }} then row.rows{% endif %}
      {%- if images.update_verdicts %} when verdict {{ one_of(images.update_verdicts) }} then row.rows_before{% endif %} end
{%- endmacro -%}

{%- macro sent_after(images) -%}
case
      {%- if images.after.own %} when verdict {{ one_of(images.after.own) }} then row.rows{% endif %} end
{%- endmacro -%}


{#- Formats with one row a message ------------------------------------------------------------------------------------------------------ -#}

{%- macro message_images(plan) -%}
-- The images of each row change.  [before, after]
message_images as (
  select
    *,
    {%- if plan.images.patches %}
    {{ removed(plan.images) }} as removed,
    {%- endif %}
    {{ images_of_side(plan.images.before) }} as found_before,
    {{ images_of_side(plan.images.after) }} as found_after
  from {% if plan.images.in_json %}(
    -- What stands in the place of an image and is not an object. Only row changes without their images need this second reading.
    select
      *,
      case when {{ lacks_image(plan.images.in_json) }} then named_struct('texts', {{ reread(plan, 'string') }}) end as reread
    from {{ 'parsed_texts' if plan.images.texts else 'classified' }}
  ){% else %}{{ 'parsed_texts' if plan.images.texts else 'named_images' if plan.images.sent else 'classified' }}{% endif %}
),
{%- endmacro -%}

{%- macro images_of_side(side) -%}
{%- if side.images -%}
case
      {%- for verdict, image in side.images.items() %}
      when verdict = {{ text(verdict) }} then {{ first_image(image) }}
      {%- endfor %} end
{%- else -%} cast(null as map<string,string>) {%- endif -%}
{%- endmacro -%}

{%- macro first_image(image) -%}
{%- if image.text_column -%} {{ name(image.text_column) }}.values
{%- elif image.columns -%} {%- call(column) first_with_columns(image.columns) -%} {{ name(column) }} {%- endcall -%}
{%- else -%} {%- call(path) first_with_columns(image.paths) -%} {{ field(path) }} {%- endcall -%}
{%- endif -%}
{%- endmacro -%}

{#- The first of several images that holds a column; if none does, the last. The caller prints the image of one item. -#}
{%- macro first_with_columns(items) -%}
{%- if items | length == 1 -%} {{ caller(items[0]) }}
{%- else -%} case{% for item in items %} {% if not loop.last %}when size({{ caller(item) }}) > 0 then{% else %}else{% endif %} {{ caller(item) }}{% endfor %} end
{%- endif -%}
{%- endmacro -%}

{%- macro removed(images) -%}
case verdict
      {%- for verdict, column in images.removed.items() %} when {{ text(verdict) }} then {{ name(column) }}.removed{% endfor %} end
{%- endmacro -%}

{%- macro lacks_image(images_of_verdict) -%}
{%- for verdict, images in images_of_verdict.items() -%}
verdict = {{ text(verdict) }} and ({% for paths in images %}{{ field(paths[0]) }} is null{{ ' or ' if not loop.last }}{% endfor %}){{ '
        or ' if not loop.last }}
{%- endfor -%}
{%- endmacro -%}


{#- Rows that cannot be used ------------------------------------------------------------------------------------------------------------ -#}

{%- macro bad_rows(plan) -%}
{%- if plan.images.in_lists -%} {{ bad_lists(plan) }} {%- else -%} {{ bad_images(plan) }} {%- endif -%}
{%- endmacro -%}

{%- macro without_rows(statement) -%}
{%- if statement.value %} if({{ given(statement.value) }} is not null, 'statement-without-rows', 'no-row-image') {%- else %} 'no-row-image' {%- endif -%}
{%- endmacro -%}

{%- macro bad_lists(plan) %}
      when reread is not null and case verdict
        {%- for change in plan.images.changes %}
        when {{ text(change.verdict) }} then {{ is_not_row_list(change.own.paths) }}
        {%- endfor %} end then 'row-not-an-object'
      when not coalesce({{ holds_row('rows') }}, false) then {{- without_rows(plan.columns['statement']) }}
{%- for change in plan.images.updates %}
      when reread is not null and verdict = {{ text(change.verdict) }} and ({{ is_not_list_before(change.before.paths[0]) }}) then 'row-not-an-object'
{%- endfor %}
      when size(rows_before) > size(rows) then 'uneven-rows'
{%- endmacro -%}

{%- macro bad_images(plan) %}
{{- bad_records(plan) if plan.avro }}
{%- if plan.images.in_json %}
      when reread is not null and case verdict
        {%- for verdict, images in plan.images.in_json.items() %}
        when {{ text(verdict) }} then {% for paths in images %}{{ is_not_image(paths) }}{{ ' or ' if not loop.last }}{% endfor %}
        {%- endfor %} end then 'row-not-an-object'
{%- endif %}
{%- for change in plan.images.changes if change.own.text_column %}
      when verdict = {{ text(change.verdict) }} and {{ name(change.own.text_column) }}.reason is not null then {{ name(change.own.text_column) }}.reason
{%- endfor %}
      when {% if plan.images.patches %}not (verdict {{ one_of(plan.images.patches) }}) and {% endif %}not coalesce({{ is_row(plan) }}, false) then {{- without_rows(plan.columns['statement']) }}
      {%- if plan.images.patches %}
      when found_after is null and verdict {{ one_of(plan.images.patches) }} then 'no-row-image'
      {%- endif %}
{%- endmacro -%}

{#- The image that makes a message a row change holds a column; an image that is laid over another may be empty. -#}
{%- macro is_row(plan) -%}
{%- set own = own_image(plan.images) -%}
size({{ own }}) > 0
        {%- if plan.spec.drop %} and (size({{ own }}) > {{ plan.spec.drop | length }} or size({{ clean(own, plan) }}) > 0){% endif %}
        {%- if plan.images.after.laid_over %} or verdict {{ one_of(plan.images.after.laid_over) }} and found_after is not null and size(found_before) > 0{% endif %}
{%- endmacro -%}

{#- The image that makes a message a row change. -#}
{%- macro own_image(images) -%}
{%- if not images.before.own -%} found_after
{%- elif not images.after.own -%} found_before
{%- else -%} if(verdict {{ one_of(images.before.own) }}, found_before, found_after)
{%- endif -%}
{%- endmacro -%}

{#- Something stands in the place of an image, and it is not an object. A later path counts only where no earlier one holds a column. -#}
{%- macro is_not_image(paths) -%}
{{ reread_at('texts', paths[0]) }} is not null and {{ field(paths[0]) }} is null
{%- if paths | length > 1 %} or not coalesce(size({{ field(paths[0]) }}) > 0, false) and ({{ is_not_image(paths[1:]) }}){% endif %}
{%- endmacro -%}

{#- Something stands in place of a list of rows. -#}
{%- macro is_not_list(path) -%}
{{ reread_at('texts', path) }} is not null and {{ reread_at('objects', path) }} is null and {{ field(path) }} is null
{%- endmacro -%}

{#- Something stands in place of a list of rows, or a null in the list. A later path counts only where no earlier one holds a row. -#}
{%- macro is_not_row_list(paths) -%}
({{ is_not_list(paths[0]) }} or coalesce(exists({{ field(paths[0]) }}, r -> r is null), false))
{%- if paths | length > 1 %} or not coalesce({{ holds_row(row_list(paths[0])) }}, false) and ({{ is_not_row_list(paths[1:]) }}){% endif %}
{%- endmacro -%}

{#- An element of the list before an update may be null: then that row has no image there. Anything else that is not an object is refused. -#}
{%- macro is_not_list_before(path) -%}
{{ is_not_list(path) }}
        or array_contains(transform({{ reread_at('lists', path) }}, (r, i) -> r is not null and get({{ field(path) }}, i) is null), true)
{%- endmacro -%}


{#- Images --------------------------------------------------------------------------------------------------------------------------------- -#}

{#- A map with each name once, and without the members that are not columns. Of equal names in Avro the last counts already. -#}
{%- macro clean(map, plan) -%}
{%- if plan.avro and not plan.spec.drop -%} {{ map }}
{%- else -%}
if(size(array_distinct(map_keys({{ map }}))) < size({{ map }}){% for dropped in plan.spec.drop %} or map_contains_key({{ map }}, {{ text(dropped.name) }}){% endfor %},
      {{ 'map_filter(' if plan.spec.drop }}map_from_entries(map_entries({{ map }})){% if plan.spec.drop %}, (c, v) -> not ({{ is_dropped(plan) }})){% endif %}, {{ map }})
{%- endif -%}
{%- endmacro -%}

{%- macro is_dropped(plan) -%}
{%- if plan.always_dropped -%} c {{ one_of(plan.always_dropped) }} {%- endif -%}
{%- for dropped in plan.sometimes_dropped -%}
{{ ' or ' if plan.always_dropped or not loop.first }}c = {{ text(dropped.name) }} and coalesce({{ conditions(dropped) }}, false)
{%- endfor -%}
{%- endmacro -%}

{#- An image as sent, without the values that stand for "not sent". -#}
{%- macro clean_image(map, plan) -%}
{%- if plan.spec.not_sent -%} map_filter({{ image_of_columns(map, plan) }}, (c, v) -> coalesce(v not in ({{ plan.spec.not_sent | map('sql_text') | join(', ') }}), true))
{%- else -%} {{ image_of_columns(map, plan) }}
{%- endif -%}
{%- endmacro -%}

{#- An image whose names are those of the types is clean, as the types are. -#}
{%- macro image_of_columns(map, plan) -%}
{%- if plan.avro and not plan.spec.drop -%} {{ map }}
{%- elif plan.types_places -%} if(map_keys({{ map }}) = map_keys(types), {{ map }}, {{ clean(map, plan) }})
{%- else -%} {{ clean(map, plan) }}
{%- endif -%}
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

{#- The text of an entry of `meta` that is a member of the row. -#}
{%- macro member_of_row(entry) -%}
coalesce({% for member in entry.members %}sent_after[{{ text(member) }}], sent_before[{{ text(member) }}]{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}

{%- macro with_texts(sent, side) -%}
if(coalesce(size(new_texts[{{ side }}]), 0) = 0, {{ sent }},
      map_concat({{ sent }}, map_from_entries(transform(new_texts[{{ side }}], v -> struct(v.column, coalesce(v.text, v.sent))))))
{%- endmacro -%}

{#- An empty image before a change says nothing; one that is laid over the other image may be empty. -#}
{%- macro image_before(plan) -%}
{%- set read = 'canonical' if plan.values.readers else 'sent' -%}
{%- if plan.images.before.laid_over -%} if(verdict {{ one_of(plan.images.before.laid_over) }}, map_concat({{ read }}_after, {{ read }}_before), {{ read }}_before)
{%- else -%} if(size({{ read }}_before) > 0, {{ read }}_before, null)
{%- endif -%}
{%- endmacro -%}

{#- The image after a change is laid over the one before it only where that one is there. -#}
{%- macro image_after(plan) -%}
{%- set read = 'canonical' if plan.values.readers else 'sent' -%}
{%- if plan.images.after.laid_over -%} if(verdict {{ one_of(plan.images.after.laid_over) }} and {{ read }}_before is not null, map_concat({{ read }}_before, {{ read }}_after), {{ read }}_after)
{%- else -%} {{ read }}_after
{%- endif -%}
{%- endmacro -%}

{#- How complete an image is: at best what the spec says. -#}
{%- macro completeness(images, side) -%}
case when kind <> 'row' then null when {{ side.name }} is null then 'none'
    {%- for word, verdicts in side.incomplete.items() %} when verdict {{ one_of(verdicts) }} then {{ text(word) }}{% endfor %}
    {%- if images.may_lack_columns %} when lacks_{{ side.name }} then 'partial'{% endif %}
    {%- if side.name == 'before' and not side.laid_over %} when not map_keys(before) = map_keys(after) and exists(map_keys(after), c -> not map_contains_key(before, c)) then 'partial'{% endif %}
    {%- if side.name == 'after' and side.laid_over %} when verdict {{ one_of(side.laid_over) }} and before is null then 'partial'{% endif %} else 'full' end
{%- endmacro -%}

{#- Where one image is laid over the other, only the columns that it brought can differ. -#}
{%- macro changed(images) -%}
case
    {%- if images.patches %} when kind = 'row' and verdict {{ one_of(images.patches) }} then sort_array(array_union(map_keys(after), coalesce(removed, array()))){% endif %} when op = 'update' and before is not null and after is not null then
      {% if images.before.laid_over %}{{ columns_that_differ('map_keys(sent_before)') }}
      {%- elif images.after.laid_over %}{{ columns_that_differ('map_keys(sent_after)') }}
      {%- else %}if(map_keys(before) = map_keys(after),
        sort_array(filter(map_keys(after), (c, i) -> not get(map_values(before), i) <=> get(map_values(after), i))),
        {{ columns_that_differ('array_union(map_keys(before), map_keys(after))') }})
      {%- endif %} end
{%- endmacro -%}

{%- macro columns_that_differ(columns) -%}
sort_array(filter({{ columns }}, c -> not (before[c] <=> after[c] and map_contains_key(before, c) = map_contains_key(after, c))))
{%- endmacro -%}
