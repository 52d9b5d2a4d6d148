;; Keeps 100 MB in each of many requests that it never sends: they live in the host, where the guest's memory limit does not see
;; them. `hoard` answers how many of its texts were refused.
(component
  (import "wasi:http/types@0.2.0" (instance $http
    (export "fields" (type $fields (sub resource)))
    (export "outgoing-request" (type $request (sub resource)))
    (type $method-type (variant
      (case "get") (case "head") (case "post") (case "put") (case "delete") (case "connect") (case "options") (case "trace")
      (case "patch") (case "other" string)))
    (export "method" (type $method (eq $method-type)))
    (export "[constructor]fields" (func (result (own $fields))))
    (export "[constructor]outgoing-request" (func (param "headers" (own $fields)) (result (own $request))))
    (export "[method]outgoing-request.set-method" (func
      (param "self" (borrow $request)) (param "method" $method) (result (result))))))

  (core module $libc (memory (export "memory") 1))
  (core instance $libc (instantiate $libc))
  (alias export $http "[constructor]fields" (func $new-fields))
  (alias export $http "[constructor]outgoing-request" (func $new-request))
  (alias export $http "[method]outgoing-request.set-method" (func $set-method))
  (core func $new-fields-core (canon lower (func $new-fields)))
  (core func $new-request-core (canon lower (func $new-request)))
  (core func $set-method-core (canon lower (func $set-method) (memory $libc "memory")))

  (core module $code
    (import "http" "new-fields" (func $new-fields (result i32)))
    (import "http" "new-request" (func $new-request (param i32) (result i32)))
    (import "http" "set-method" (func $set-method (param i32 i32 i32 i32) (result i32)))
    (import "libc" "memory" (memory 1))
    (func (export "hoard") (param $times i32) (result i32)
      (local $refused i32)
      (drop (memory.grow (i32.const 1600)))
      (memory.fill (i32.const 0) (i32.const 65) (i32.const 100000000))
      (loop $again
        (local.set $refused
          (i32.add
            (local.get $refused)
            (call $set-method
              (call $new-request (call $new-fields))
              (i32.const 9) (i32.const 0) (i32.const 100000000))))
        (local.set $times (i32.sub (local.get $times) (i32.const 1)))
        (br_if $again (local.get $times)))
      (local.get $refused))
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code
    (with "libc" (instance $libc))
    (with "http" (instance
      (export "new-fields" (func $new-fields-core))
      (export "new-request" (func $new-request-core))
      (export "set-method" (func $set-method-core))))))
  (func $hoard (param "times" u32) (result u32) (canon lift (core func $guest "hoard")))
  (func $add (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $guest "add")))
  (export "hoard" (func $hoard))
  (export "add" (func $add)))
