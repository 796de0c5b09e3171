{#- Rows and their images: where they lie in a message, whether they are rows, what is not a column. Each macro prints one expression. -#}

{%- macro in_brackets(expression) -%} ({{ expression }}) {%- endmacro -%}
{%- macro if_true(condition, result) -%} if({{ condition }}, {{ result }}, null) {%- endmacro -%}
{%- macro is_not(condition) -%} not ({{ condition }}) {%- endmacro -%}
{%- macro is_not_true(condition) -%} not coalesce({{ condition }}, false) {%- endmacro -%}
{%- macro member_of(column, member) -%} {{ column }}.{{ member }} {%- endmacro -%}


{#- Formats whose messages hold lists of rows --------------------------------------------------------------------------------------- -#}

{%- macro holds_row(rows) -%} exists({{ rows }}, r -> size(r) > 0) {%- endmacro -%}

{%- macro holds_no_row(rows) -%} not coalesce({{ holds_row(rows) }}, false) {%- endmacro -%}

{%- macro list_or(rows, otherwise) -%} if({{ holds_row(rows) }}, {{ rows }}, {{ otherwise }}) {%- endmacro -%}

{#- The rows of each message beside the rest of it. Every row is a copy of what stands here, and Spark's Java would hold all copies of one message
    at once: so no list of the message goes along, and the rows come out of a lambda, of which no Java is made. -#}
{%- macro each_row(long_fields, raw, added, of_rows) -%}
(select * except ({{ (['raw'] + long_fields) | join(', ') }}), {{ raw }} as raw
    {%- for column, expression in added.items() %},
    {{ expression }} as {{ column }}
    {%- endfor %} from checked)
  lateral view outer inline(transform(if(reason is null and verdict like 'row %', rows, null), (row, nth) ->
    struct(nth, {{ of_rows | in_columns(6) }}))) each
{%- endmacro -%}

{%- macro nth_of(list) -%} get({{ list }}, nth) {%- endmacro -%}


{#- Formats with one row a message ------------------------------------------------------------------------------------------------------ -#}

{%- macro read_text(function, verdicts, sent) -%} {{ function }}(if(verdict {{ one_of(verdicts) }}, {{ sent }}, null)) {%- endmacro -%}

{#- The text of an image in another language than JSON: one that is only the value of a column, as a document with this column; one that a list
    of columns may stand for. -#}
{%- macro document_of_value(column, sent) -%} concat({{ text('{' ~ column | tojson ~ ':') }}, {{ sent }}, '}') {%- endmacro -%}
{%- macro text_or_empty(sent, removed) -%} coalesce({{ sent }}, if(size({{ removed }}) > 0, '{}', null)) {%- endmacro -%}

{#- Images in JSON that are no objects with a member for each column, as maps. -#}
{%- macro map_of_lists(names, sent) -%}
if(size({{ names }}) = size({{ sent }}) and not exists({{ names }}, n -> n is null), map_from_arrays({{ names }}, {{ sent }}), null)
{%- endmacro -%}

{%- macro map_of_objects(sent, column, value) -%}
if(exists({{ sent }}, c -> c.{{ column }} is null), null,
      map_from_entries(transform({{ sent }}, c -> struct(c.{{ column }}, c.{{ value }}))))
{%- endmacro -%}

{%- macro map_of_members(sent, value) -%}
if(exists(map_values({{ sent }}), c -> c is null), null, transform_values({{ sent }}, (n, c) -> c.{{ value }}))
{%- endmacro -%}

{%- macro map_of_prefixed(sent, prefix) -%}
transform_keys(map_filter({{ sent }}, (c, v) -> startswith(c, {{ text(prefix) }})), (c, v) -> substr(c, {{ prefix | length + 1 }}))
{%- endmacro -%}

{%- macro map_of_others(sent, prefix) -%} map_filter({{ sent }}, (c, v) -> not startswith(c, {{ text(prefix) }})) {%- endmacro -%}


{#- Rows that cannot be used ------------------------------------------------------------------------------------------------------------ -#}

{%- macro without_rows(statement) -%} if({{ statement }} is not null, 'statement-without-rows', 'no-row-image') {%- endmacro -%}

{%- macro is_misfit(path) -%} array_contains(misfits, {{ text(path) }}) {%- endmacro -%}

{%- macro is_longer(one, other) -%} size({{ one }}) > size({{ other }}) {%- endmacro -%}

{#- An image that was sent, of which no map could be made. -#}
{%- macro is_lost(sent, map) -%} verdict like 'row %' and {{ sent }} is not null and {{ map }} is null {%- endmacro -%}

{%- macro holds_others(image, dropped, columns) -%} (size({{ image }}) > {{ dropped }} or size({{ columns }}) > 0) {%- endmacro -%}

{%- macro is_laid_over(verdicts) -%} verdict {{ one_of(verdicts) }} and found_after is not null and size(found_before) > 0 {%- endmacro -%}

{%- macro either_image(verdicts) -%} if(verdict {{ one_of(verdicts) }}, found_before, found_after) {%- endmacro -%}

{%- macro if_empty(image, condition) -%} not coalesce(size({{ image }}) > 0, false) and ({{ condition }}) {%- endmacro -%}

{#- Something else stands in place of a list of rows, or a null in the list. -#}
{%- macro is_not_row_list(path, list) -%} {{ is_misfit(path) }} or exists({{ list }}, r -> r is null) {%- endmacro -%}

{%- macro without_row(list, condition) -%} {{ holds_no_row(list) }} and ({{ condition }}) {%- endmacro -%}


{#- Images --------------------------------------------------------------------------------------------------------------------------------- -#}

{%- macro if_usable(columns) -%} if(reason is null, {{ columns }}, null) {%- endmacro -%}

{%- macro part_of_key(verdicts, part, columns) -%} if(verdict {{ one_of(verdicts) }}, {{ part }}, {{ columns }}) {%- endmacro -%}

{%- macro placeholders(texts) -%} array({{ texts | map('sql_text') | list | in_lines(6) }}) {%- endmacro -%}

{%- macro without_placeholders(columns) -%} map_filter({{ columns }}, (c, v) -> array_contains(placeholders, v) is not true) {%- endmacro -%}

{#- The text of an entry of `meta` that is a member of the row. -#}
{%- macro member_of_row(members) -%}
coalesce({% for member in members %}found_after[{{ text(member) }}], found_before[{{ text(member) }}]{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}

{%- macro if_holds(sent, image) -%} if(size({{ sent }}) > 0, {{ image }}, null) {%- endmacro -%}

{#- An image of only some columns, laid over the other one. -#}
{%- macro laid_over(verdicts, other, image, more='') -%}
if(verdict {{ one_of(verdicts) }}{{ more }}, map_concat({{ other }}, {{ image }}), {{ image }})
{%- endmacro -%}
{%- macro laid_over_sent(verdicts, other, image) -%} {{ laid_over(verdicts, other, image, ' and sent_before is not null') }} {%- endmacro -%}
{%- macro laid_over_nulls(verdicts, image) -%}
if(verdict {{ one_of(verdicts) }} and sent_before is not null,
      map_concat(transform_values(sent_before, (c, v) -> cast(null as string)), {{ image }}), {{ image }})
{%- endmacro -%}

{%- macro is_key_alone(side, verdicts) -%}
{{ side }} is not null and verdict {{ one_of(verdicts) }} and not coalesce(size(array_except(map_keys({{ side }}), key_names)) > 0, false)
{%- endmacro -%}

{%- macro of_rows(value) -%} if(kind = 'row', {{ value }}, null) {%- endmacro -%}

{%- macro special_of_rows(pairs, otherwise) -%}
case when kind <> 'row' then null{% for condition, result in pairs %} when {{ condition }} then {{ result }}{% endfor %} else {{ otherwise }} end
{%- endmacro -%}

{#- The names of all columns in both images as they were sent, with those that have types. -#}
{%- macro names_in_images(images) -%}
if(reason is null, map_concat({% for image in images %}coalesce({{ image }}, map()), {% endfor %}coalesce(types, map())), null)
{%- endmacro -%}

{%- macro names_with_missing() -%}
if(size(missing_columns) > 0, map_concat(map_from_arrays(missing_columns, missing_columns), coalesce(types, map())), types)
{%- endmacro -%}

{%- macro is_row_with(verdicts) -%} kind = 'row' and verdict {{ one_of(verdicts) }} {%- endmacro -%}
{%- macro is_usable_with(verdicts) -%} reason is null and verdict {{ one_of(verdicts) }} {%- endmacro -%}
{%- macro columns_of_image() -%} sort_array(map_keys(after)) {%- endmacro -%}
{%- macro columns_of_patch() -%} sort_array(array_union(map_keys(after), coalesce(removed, array()))) {%- endmacro -%}


{#- Two images of one row -------------------------------------------------------------------------------------------------------------------- -#}
{#- The columns in which two images differ; null where that cannot be known. -#}
{%- macro changed_between(before, after, types) -%}
case
  when map_keys({{ before }}) = map_keys({{ after }})
    then sort_array(filter(map_keys({{ after }}), (c, i) -> not get(map_values({{ before }}), i) <=> get(map_values({{ after }}), i)))
  when ({{ lacks_columns(before, after, types) }}) = ({{ lacks_columns(after, before, types) }})
    then sort_array(array_intersect(array_intersect(map_keys({{ before }}), map_keys({{ after }})), {{ of_other_values(before, after) }})) end
{%- endmacro -%}

{#- The columns whose values differ; one that is missing on one side has null there. -#}
{%- macro of_other_values(before, after) -%}
map_keys(map_filter(map_zip_with({{ before }}, {{ after }}, (c, b, a) -> not b <=> a), (c, differs) -> differs))
{%- endmacro -%}

{#- The values that an image has of the columns of a map. Looking up a name takes time that follows the number of columns, so that many are found all at
    once. -#}
{%- macro values_at_once(columns, image) -%}
slice(map_values(map_zip_with({{ columns }}, {{ image }}, (c, wanted, v) -> v)), 1, size({{ columns }}))
{%- endmacro -%}

{#- How much of a row an image holds. -#}
{%- macro how_complete(image, other, types, key_names) -%}
case
  when {{ image }} is null then 'none'
  when coalesce(map_keys({{ image }}) = map_keys({{ types }}), {{ types }} is null)
    and coalesce(map_keys({{ image }}) = map_keys({{ other }}), {{ other }} is null) then 'full'
  when not ({{ lacks_columns(image, other, types) }}) then 'full'
  when size({{ image }}) > 0 and size(array_except(map_keys({{ image }}), {{ key_names }})) = 0 then 'key'
  else 'partial' end
{%- endmacro -%}

{#- Whether an image lacks a column that the other image or the types have. -#}
{%- macro lacks_columns(image, other, types) -%}
coalesce(size(array_except(map_keys({{ other }}), map_keys({{ image }}))) > 0, false) or coalesce(size(array_except(map_keys({{ types }}), map_keys({{ image }}))) > 0, false)
{%- endmacro -%}
