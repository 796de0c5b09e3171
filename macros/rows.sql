{#- Rows and their images: where they lie in a message, whether they are rows, what is not a column. -#}

{#- Formats whose messages hold lists of rows --------------------------------------------------------------------------------------- -#}

{#- The rows of each row change, those before an update, and those in the place of images that the change does not have. -#}
{%- macro row_lists(plan) -%}
{{ own_rows(plan.images.changes) }} as rows,
    {{ rows_before(plan.images.updates) }} as rows_before
    {%- if plan.images.others %},
    {{ other_rows(plan) }} as other_rows
    {%- endif %}
{%- endmacro -%}

{#- Most row changes have their rows in the same list. -#}
{%- macro own_rows(changes) -%}
{%- set usual = changes[0].own.paths -%}
{%- set others = changes | rejectattr('own.paths', 'equalto', usual) | list -%}
{%- if others -%}
case {% for change in others %}when verdict = {{ text(change.verdict) }} then {{ first_list_with_row(change.own.paths) }} {% endfor -%}
      else {{ first_list_with_row(usual) }} end
{%- else -%} {{ first_list_with_row(usual) }} {%- endif -%}
{%- endmacro -%}

{%- macro rows_before(updates) -%}
{%- if updates -%}
case{% for change in updates %} when verdict = {{ text(change.verdict) }} then {{ first_list_with_row(change.before.paths) }}{% endfor %} end
{%- else -%} cast(null as array<map<string,string>>)
{%- endif -%}
{%- endmacro -%}

{#- The first of several lists that holds a row; if none does, the last. -#}
{%- macro first_list_with_row(paths) -%}
{%- if paths | length == 1 -%} {{ field(paths[0]) }}
{%- else -%} if({{ holds_row(field(paths[0])) }}, {{ field(paths[0]) }}, {{ first_list_with_row(paths[1:]) }})
{%- endif -%}
{%- endmacro -%}

{%- macro holds_row(rows) -%} exists({{ rows }}, r -> size(r) > 0) {%- endmacro -%}

{#- The rows of each message beside the rest of it. Every row is a copy of what stands here, and Spark's Java would hold all copies of one message
    at once: so no list of the message goes along, and the rows come out of a lambda, of which no Java is made. -#}
{%- macro each_row(plan) -%}
(select * except (raw{% for path in plan.long_fields %}, {{ field(path) }}{% endfor %}), if(reason is null, null, raw) as raw
    {%- if plan.values.exponents %},
    {{ zeros_allowed() }} as zeros_allowed
    {%- endif %}
    {%- for path in plan.images.listed %}, {{ field(path) }} as {{ listed(path) }}{% endfor %} from checked)
  lateral view outer inline(transform(if(reason is null and verdict like 'row %', rows, null), (row, nth) ->
    struct(nth, {{ row_before_change(plan.images) }} as found_before,
      {{ row_after_change(plan.images) }} as found_after
    {%- if plan.images.listed %},
      {{ marks(plan) }}
    {%- endif %}
    {%- if plan.images.others %},
      get(other_rows, nth) as other_row
    {%- endif %}
    {%- if plan.bytes_in_doubt %}, array_join(transform(rows_in_doubt, texts -> get(texts, nth)), ',') as json_in_doubt
    {%- endif %}))) each
{%- endmacro -%}

{#- The image of one row on each side. -#}
{%- macro row_before_change(images) -%}
case verdict
      {%- for verdict in images.before.own %} when {{ text(verdict) }} then row{% endfor %}
      {%- for verdict in images.update_verdicts %} when {{ text(verdict) }} then get(rows_before, nth){% endfor %} end
{%- endmacro -%}

{%- macro row_after_change(images) -%}
case
      {%- if images.after.own %} when verdict {{ one_of(images.after.own) }} then row{% endif %} end
{%- endmacro -%}


{#- Formats with one row a message ------------------------------------------------------------------------------------------------------ -#}

{%- macro message_images(plan) -%}
-- The images of each row change.  [before, after]
message_images as (
  select *,
    {{- hidden_members(plan) }}{{ ',' if plan.spec.drop }}
    {{- placeholders(plan) }}{{ ',' if '' in plan.spec.not_sent }}
    {%- if plan.images.removed %}
    {{ removed(plan.images) }} as removed,
    {%- endif %}
    {{ images_of_side(plan.images.before) }} as found_before,
    {{ images_of_side(plan.images.after) }} as found_after
  from {{ 'named_images' if plan.images.sent or plan.images.named else 'parsed_texts' if plan.images.texts else 'classified' }}
),
{%- endmacro -%}

{#- The image on one side, for the verdicts that have one there. -#}
{%- macro images_of_side(side) -%}
{%- if side.images -%}
case{% for image, verdicts in side.by_image %} when verdict {{ one_of(verdicts) }} then {{ first_image(image) }}{% endfor %} end
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
      {%- for verdict, removed in images.removed.items() %} when {{ text(verdict) }} then {% if removed.path %}{{ field(removed.path) }}{% else %}{{ name(removed.column) }}.removed{% endif %}{% endfor %} end
{%- endmacro -%}

{#- The text of an image in another language than JSON; one that is only the value of a column, as a document with this column. -#}
{%- macro text_of_image(image) -%}
{%- if image.value_of -%} concat({{ text('{' ~ image.value_of | tojson ~ ':') }}, {{ field(image.path) }}, '}')
{%- elif image.removed -%} coalesce({{ field(image.path) }}, if(size({{ field(image.removed) }}) > 0, '{}', null))
{%- else -%} {{ field(image.path) }}
{%- endif -%}
{%- endmacro -%}

{#- Images in JSON that are no objects with a member for each column, as maps. -#}
{%- macro maps_of_images(plan) -%}
-- The images, column -> value.  [names, name, value, prefix]
named_images as (
  select *,
    {%- for image in plan.images.named %}
    {{ map_of_image(image) }} as {{ name(image.column) }}{{ ',' if not loop.last }}
    {%- endfor %}
  from {{ 'parsed_texts' if plan.images.texts else 'classified' }}
),
{%- endmacro -%}

{%- macro map_of_image(image) -%}
{%- set sent = field(image.path) -%}
{%- if image.form == 'lists' -%} if(size({{ field(image.image.names) }}) = size({{ sent }}) and not exists({{ field(image.image.names) }}, n -> n is null), map_from_arrays({{ field(image.image.names) }}, {{ sent }}), null)
{%- elif image.form == 'objects' -%}
if(exists({{ sent }}, c -> c.{{ name(image.image.name) }} is null), null,
      map_from_entries(transform({{ sent }}, c -> struct(c.{{ name(image.image.name) }}, c.{{ name(image.image.value) }}))))
{%- elif image.form == 'members' -%}
if(exists(map_values({{ sent }}), c -> c is null), null, transform_values({{ sent }}, (n, c) -> c.{{ name(image.image.value) }}))
{%- elif image.form == 'prefixed' -%}
transform_keys(map_filter({{ sent }}, (c, v) -> startswith(c, {{ text(image.prefix) }})), (c, v) -> substr(c, {{ image.prefix | length + 1 }}))
{%- elif image.prefix -%} map_filter({{ sent }}, (c, v) -> not startswith(c, {{ text(image.prefix) }}))
{%- else -%} {{ sent }}
{%- endif -%}
{%- endmacro -%}


{#- Rows that cannot be used ------------------------------------------------------------------------------------------------------------ -#}

{%- macro bad_rows(plan) -%}
{%- if plan.images.in_lists -%} {{ bad_lists(plan) }} {%- else -%} {{ bad_images(plan) }} {%- endif -%}
{%- endmacro -%}

{%- macro without_rows(statement) -%}
{%- if statement.value %} if({{ given(statement.value) }} is not null, 'statement-without-rows', 'no-row-image') {%- else %} 'no-row-image' {%- endif -%}
{%- endmacro -%}

{%- macro bad_lists(plan) %}
      {%- for path, verdicts in plan.images.first_paths %}
      when {{ verdict_and(verdicts, plan) }}{% if verdicts | length < plan.images.changes | length %}({{ is_not_row_list(path) }}){% else %}{{ is_not_row_list(path) }}{% endif %} then 'row-not-an-object'
      {%- endfor %}
      {%- for paths, verdicts in plan.images.own_paths if paths | length > 1 %}
      when {{ verdict_and(verdicts, plan) }}{{ is_not_later_list(paths) }} then 'row-not-an-object'
      {%- endfor %}
      when not coalesce({{ holds_row('rows') }}, false) then {{- without_rows(plan.columns['statement']) }}
      {%- for change in plan.images.updates %}
      when verdict = {{ text(change.verdict) }} and array_contains(misfits, {{ text(change.before.paths[0] | join('.')) }}) then 'row-not-an-object'
      {%- endfor %}
      when size({{ 'coalesce(rows_before, other_rows)' if plan.images.others else 'rows_before' }}) > size(rows) then 'uneven-rows'
{%- endmacro -%}

{%- macro bad_images(plan) %}
{{- bad_records(plan) if plan.avro }}
{%- for image in plan.images.named if image.form in ('lists', 'objects', 'members') %}
      when verdict like 'row %' and {{ field(image.path) }} is not null and {{ name(image.column) }} is null then 'schema-mismatch'
{%- endfor %}
{%- if plan.images.in_json %}
      {%- for images, verdicts in plan.images.json_paths %}
      when {{ verdict_and(verdicts, plan) }}{{ '(' if images | length > 1 or images[0] | length > 1 }}{% for paths in images %}{{ is_not_image(paths) }}{{ ' or ' if not loop.last }}{% endfor %}{{ ')' if images | length > 1 or images[0] | length > 1 }} then 'row-not-an-object'
      {%- endfor %}
{%- endif %}
{%- for change in plan.images.changes if change.own.text_column %}
      when verdict = {{ text(change.verdict) }} and {{ name(change.own.text_column) }}.reason is not null then {{ name(change.own.text_column) }}.reason
{%- endfor %}
      when {% if plan.images.patches %}not (verdict {{ one_of(plan.images.patches) }}) and {% endif %}not coalesce({{ is_row(plan) }}, false) then {{- without_rows(plan.columns['statement']) }}
      {%- if plan.images.patches %}
      when found_after is null and verdict {{ one_of(plan.images.patches) }} then 'no-row-image'
      {%- endif %}
{%- endmacro -%}

{%- macro verdict_and(verdicts, plan) -%}
{%- if verdicts | length < plan.images.changes | length -%} verdict {{ one_of(verdicts) }} and {% endif -%}
{%- endmacro -%}

{#- The image that makes a message a row change holds a column; an image that is laid over another may be empty. -#}
{%- macro is_row(plan) -%}
{%- set own = own_image(plan.images) -%}
size({{ own }}) > 0
        {%- if plan.spec.drop %} and (size({{ own }}) > {{ plan.spec.drop | length }} or size({{ table_columns(own, plan) }}) > 0){% endif %}
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
array_contains(misfits, {{ text(paths[0] | join('.')) }})
{%- if paths | length > 1 %} or not coalesce(size({{ field(paths[0]) }}) > 0, false) and ({{ is_not_image(paths[1:]) }}){% endif %}
{%- endmacro -%}

{#- Something else stands in place of a list of rows, or a null in the list. -#}
{%- macro is_not_row_list(path) -%}
array_contains(misfits, {{ text(path | join('.')) }}) or exists({{ field(path) }}, r -> r is null)
{%- endmacro -%}

{#- The same for a list that counts only where no earlier one holds a row. -#}
{%- macro is_not_later_list(paths) -%}
not coalesce({{ holds_row(field(paths[0])) }}, false) and ({{ is_not_row_list(paths[1]) }}{% if paths | length > 2 %} or {{ is_not_later_list(paths[1:]) }}{% endif %})
{%- endmacro -%}


{#- Images --------------------------------------------------------------------------------------------------------------------------------- -#}

{#- The members of a map that are columns. In Avro names are there once already. -#}
{%- macro table_columns(map, plan, types='null') -%}
{%- if plan.avro and not plan.spec.drop -%} {{ map }}
{%- else -%} table_columns({{ map }}, {{ types }}, {{ hidden(plan) }})
{%- endif -%}
{%- endmacro -%}

{%- macro hidden(plan) -%} {{ 'hidden' if plan.spec.drop else 'array()' }} {%- endmacro -%}

{#- The members of rows that are not columns, as a column of its own. -#}
{%- macro hidden_members(plan) -%}
{%- if plan.spec.drop %}
    array({% for dropped in plan.spec.drop %}{% if dropped.conditions %}if({{ conditions(dropped) }}, {{ text(dropped.name) }}, null){% else %}{{ text(dropped.name) }}{% endif %}{{ ', ' if not loop.last }}{% endfor %}) as hidden
{%- endif -%}
{%- endmacro -%}

{#- The columns of an image as sent, of a message that can be used. -#}
{%- macro columns_of_image(plan, side) -%}
{%- set columns = clean_image('found_' ~ side.name, plan, side) -%}
{{ columns if plan.images.in_lists else 'if(reason is null, ' ~ columns ~ ', null)' }}
{%- endmacro -%}

{#- An image as sent, without the values that stand for "not sent", and where only the key counts, without all others. -#}
{%- macro clean_image(map, plan, side) -%}
{%- if side.key_only -%} if(verdict {{ one_of(side.key_only) }}, key_part({{ columns_sent(map, plan) }}, key_names), {{ columns_sent(map, plan) }})
{%- else -%} {{ columns_sent(map, plan) }}
{%- endif -%}
{%- endmacro -%}

{%- macro columns_sent(map, plan) -%}
{%- set columns = table_columns(map, plan, 'types' if plan.types_places else 'null') -%}
{%- if '' in plan.spec.not_sent -%} map_filter({{ columns }}, (c, v) -> array_contains(placeholders, v) is not true)
{%- else -%} {{ columns }}
{%- endif -%}
{%- endmacro -%}

{#- An image without the columns of whose type a text says that the value was not sent. -#}
{%- macro without_unsent(image, plan) -%}
{%- set found = namespace(image=image) -%}
{%- for type, texts in plan.spec.not_sent.items() if type -%}
{%- set found.image = 'sent_columns(' ~ found.image ~ ', types, ' ~ text(type) ~ ', array(' ~ texts | map('sql_text') | join(', ') ~ '))' -%}
{%- endfor -%}
{{ found.image }}
{%- endmacro -%}

{#- The texts that stand for a value that was not sent, as a column of its own. -#}
{%- macro placeholders(plan) -%}
{%- if '' in plan.spec.not_sent %}
    array({{ plan.spec.not_sent[''] | map('sql_text') | list | in_lines(6) }}) as placeholders
{%- endif -%}
{%- endmacro -%}

{#- An image that the change does not have and its message holds all the same. It may be the row itself, where that can stand in several places. -#}
{%- macro other_image(plan) -%}
{%- if plan.images.in_lists -%} other_image(other_row, coalesce(found_after, found_before), {{ hidden(plan) }})
{%- else -%}
case
{%- for other in plan.images.others %} when reason is null and verdict {{ one_of(other.verdicts) }} then other_image(
      {{- first_image(other.image) }}, coalesce(found_before, found_after), {{ hidden(plan) }})
{%- endfor %} end
{%- endif -%}
{%- endmacro -%}

{%- macro other_rows(plan) -%}
case{% for other in plan.images.others %} when verdict {{ one_of(other.verdicts) }} then {{ field(other.image.paths[0]) }}{% endfor %} end
{%- endmacro -%}

{#- The text of an entry of `meta` that is a member of the row. -#}
{%- macro member_of_row(entry) -%}
coalesce({% for member in entry.members %}found_after[{{ text(member) }}], found_before[{{ text(member) }}]{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}

{#- An empty image before a change says nothing; one that is laid over the other image may be empty. -#}
{%- macro image_before(plan) -%}
{%- if plan.images.before.laid_over -%} if(verdict {{ one_of(plan.images.before.laid_over) }}, map_concat({{ read_image('after', plan) }}, {{ read_image('before', plan) }}), {{ read_image('before', plan) }})
{%- else -%} if(size(sent_before) > 0, {{ read_image('before', plan) }}, null)
{%- endif -%}
{%- endmacro -%}

{#- The image after a change is laid over the one before it only where that one is there. What it lacks because it is null is null where the other
    image has it. -#}
{%- macro image_after(plan) -%}
{%- if plan.images.after.laid_over -%} if(verdict {{ one_of(plan.images.after.laid_over) }} and sent_before is not null, map_concat({{ read_image('before', plan) }}, {{ read_image('after', plan) }}), {{ read_image('after', plan) }})
{%- elif plan.images.after.without_nulls -%}
if(verdict {{ one_of(plan.images.after.without_nulls) }} and sent_before is not null,
      map_concat(transform_values(sent_before, (c, v) -> cast(null as string)), {{ read_image('after', plan) }}), {{ read_image('after', plan) }})
{%- else -%} {{ read_image('after', plan) }}
{%- endif -%}
{%- endmacro -%}

{#- One image in canonical text. -#}
{%- macro read_image(side, plan) -%} {{ 'with_texts(sent_' ~ side ~ ', texts_' ~ side ~ ')' if plan.values.readers else 'sent_' ~ side }} {%- endmacro -%}

{#- How complete an image is: at best what the spec says. -#}
{%- macro completeness(images, side) -%}
{%- set other = images.after if side.name == 'before' else images.before -%}
{%- set found -%} completeness({{ side.name }}, {{ other.name }}, {{ named_columns(images) }}, key_names) {%- endset -%}
{%- set special = [] -%}
{%- if side.key_only -%}
{%- do special.append('when ' ~ side.name ~ ' is not null and verdict ' ~ one_of(side.key_only) ~ ' and not coalesce(size(array_except(map_keys(' ~ side.name ~ "), key_names)) > 0, false) then 'key'") -%}
{%- endif -%}
{%- for word, verdicts in side.incomplete.items() -%}
{%- set always = [] -%}
{%- for verdict in verdicts if verdict not in side.key_only -%} {%- do always.append(verdict) -%} {%- endfor -%}
{%- if always -%} {%- do special.append('when ' ~ side.name ~ ' is not null and verdict ' ~ one_of(always) ~ ' then ' ~ text(word)) -%} {%- endif -%}
{%- endfor -%}
{%- if side.name == 'after' and side.laid_over -%}
{%- do special.append('when before is null and verdict ' ~ one_of(side.laid_over) ~ " then 'partial'") -%}
{%- endif -%}
{%- if special -%} case when kind <> 'row' then null {{ special | join(' ') }} else {{ found }} end
{%- else -%} if(kind = 'row', {{ found }}, null)
{%- endif -%}
{%- endmacro -%}

{#- A map of the columns that a message names for its table: those with types, and those that it says were not sent. -#}
{%- macro named_columns(images) -%} {{ 'named_columns' if images.name_columns else 'types' }} {%- endmacro -%}

{#- The names of all columns in both images as they were sent, with those that have types. -#}
{%- macro names_in_images(plan) -%}
if(reason is null, map_concat({% for side in ('found_before', 'found_after') %}coalesce({{ table_columns(side, plan) }}, map()), {% endfor %}coalesce(types, map())), null)
{%- endmacro -%}

{#- Where one image is laid over the other, only the columns that it brought can differ. -#}
{%- macro changed(images) -%}
case
    {%- if images.patches %} when kind = 'row' and verdict {{ one_of(images.patches) }} then sort_array({{ 'array_union(map_keys(after), coalesce(removed, array()))' if images.removed else 'map_keys(after)' }}){% endif %} when op = 'update' then
    {%- if images.before.laid_over %} changed_among(columns_before, before, after)
    {%- elif images.after.laid_over %} changed_among(columns_after, before, after)
    {%- else %} changed_columns(before, after, {{ named_columns(images) }})
    {%- endif %} end
{%- endmacro -%}


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
