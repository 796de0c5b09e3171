select cast(id as int) as id, parent from values ('1', null), ('1', '1'), (null, '2'), ('3', '7') as t(id, parent)
