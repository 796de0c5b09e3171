-- mirror_of_orders: shop.orders of source canal, each row as it is now
with
-- The changes of the table, with the names that its columns have here.
sent as (
  select rank, source, op, seq, origin, event_time, valid_from, after_image,
    transform(changed, c -> coalesce(names[lower(c)], c)) as changed,
    named_as(key, names) as key, named_as(old_key, names) as old_key, named_as(before, names) as before, named_as(after, names) as after
  from (
    select 0 as rank, *, coalesce(event_time, produced_at, origin.timestamp) as valid_from,
      map('id', 'id', 'status', 'status', 'amount', 'amount', 'paid_at', 'paid_at', 'paid', 'paid_at') as names
    from `canal_to_changelog`
    where kind = 'row' and table_name = 'orders' and coalesce(schema_name, db_name) = 'shop'
      and not (op = 'update' and after_image = 'none')
  )
),

-- When the table was emptied.
emptied as (
  select collect_list(struct(rank, earlier, generation, phase, event_time, log, sent_at, arrival, at)) as times
  from (
    select
      0 as rank, 0 as earlier, seq.generation, seq.phase, event_time, concat(origin.topic, '/', origin.partition) as log, origin.timestamp
        as sent_at, seq.arrival,
      coalesce(event_time, produced_at, origin.timestamp) as at
    from `canal_to_changelog`
    where kind = 'ddl' and op in ('truncate', 'drop') and table_name = 'orders' and coalesce(schema_name, db_name) = 'shop'
  )
),

-- The row that each change is of. A change of the key is of two rows.
keyed as (
  select *, struct(try_cast(coalesce(key['id'], if(op = 'delete', before, after)['id'], before['id']) as bigint) as `id`) as key_after,
    struct(coalesce(try_cast(coalesce(old_key['id'], before['id']) as bigint), key_after.`id`) as `id`) as key_before,
    op = 'update' and key_before <> key_after as moved
  from sent
),

-- What each change does to a row: it removes it, or tells all of its columns, or some.
changes as (
  select
    source, op, event_time as changed_at, valid_from, removes,
    named_struct('rank', rank, 'seq', seq) as place,
    if(removes, key_before, key_after) as row_key,
    removes or op <> 'update' or after_image = 'full' or moved as is_whole,
    case
      when removes then map()
      when moved then map_concat(coalesce(before, map()), after)
      when after_image = 'patch' then told_columns(after, changed)
      else coalesce(after, map()) end as told,
    emptied_after(times, rank, seq, event_time, concat(origin.topic, '/', origin.partition), origin.timestamp) as emptied
  from keyed cross join emptied
  lateral view explode(case when moved then array(true, false) when op = 'delete' then array(true) else array(false) end) as removes
  where if(removes, key_before, key_after).`id` is not null
),

-- What is known of each row that was ever there.
known as (
  select
    row_key,
    max_by(struct(place, source, changed_at, removes), place) as newest,
    max(place) filter (where is_whole) as newest_whole,
    min(place) filter (where not is_whole) as first_part,
    coalesce(
      max(place) filter (where not is_whole) > max(place) filter (where is_whole),
      max(place) filter (where not is_whole) is not null) as in_parts,
    known_columns(
      max_by(told, place) filter (where is_whole),
      max(place) filter (where is_whole),
      collect_list(struct(place, told)) filter (where not is_whole)) as told
  from changes
  where size(emptied) = 0
  group by row_key
),

-- The rows that are there, typed.
typed as (
  select newest, in_parts, told, struct(
    row_key.`id` as `id`, told['status'] as `status`,
    if(told['amount'] rlike '^[+-]?[0-9]*([.][0-9]{0,2}0*)?$', try_cast(told['amount'] as decimal(10,2)), null) as `amount`,
    as_timestamp(told['paid_at']) as `paid_at`) as row
  from known
  where not newest.removes
)

select
  row.`id`, row.`status`, row.`amount`, row.`paid_at`, newest.changed_at as _changed_at, newest.place.seq as _seq,
  newest.source as _source, in_parts as _in_parts,
  unfit_columns(told, array(
    if(row.`amount` is null, 'amount', null), if(row.`paid_at` is null, 'paid_at', null))) as _unfit
from typed
