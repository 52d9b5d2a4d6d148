;; Takes handles of the host and gives none back. Each is small in the guest, a number, and larger in the host, where the guest's
;; memory limit does not see it.
(component
  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type (sub resource)))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (alias outer 1 $pollable (type $outer-pollable))
    (export "pollable" (type $own-pollable (eq $outer-pollable)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $own-pollable))))))

  (alias export $clock "subscribe-duration" (func $subscribe))
  (core func $subscribe-core (canon lower (func $subscribe)))

  (core module $code
    (import "clock" "subscribe-duration" (func $subscribe (param i64) (result i32)))
    (func $take (export "take") (param $times i32) (result i32)
      (local $taken i32)
      (loop $again
        (if (i32.lt_u (local.get $taken) (local.get $times))
          (then
            (drop (call $subscribe (i64.const 3600000000000)))
            (local.set $taken (i32.add (local.get $taken) (i32.const 1)))
            (br $again))))
      (local.get $taken))
    ;; More than there are, so this ends in a trap: nothing else tells a guest that there are no more.
    (func (export "hoard") (result i32) (call $take (i32.const -1)))
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code
    (with "clock" (instance (export "subscribe-duration" (func $subscribe-core))))))

  (func (export "hoard") (result u32) (canon lift (core func $guest "hoard")))
  (func (export "take") (param "times" u32) (result u32) (canon lift (core func $guest "take")))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
