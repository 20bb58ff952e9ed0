# Builds from nothing (./run, ./test) compile each folder's files in batches: half the compiler's time, since most of it
# goes into the same headers again and again. Work on the code is better off without, so it is an option.
#
# Files of one batch share their anonymous namespaces. Those that name something there as another file of their folder does
# are listed here and compiled on their own; a new clash shows as "redefinition of ... {anonymous}": name it apart, or add
# the file. Tests and cli/ are not batched, their files being alike on purpose; tests precompile
# their headers instead.
option(WAVETANK_UNITY "Compile several files of a folder at once" OFF)

set(WAVETANK_ALONE
  core/config/peer_authentication.cc core/config/service_entry.cc core/config/sidecar.cc
  core/gen/cluster_draft.cc core/gen/downstream_tls.cc core/gen/eds.cc core/gen/eds_load_assignment.cc core/gen/gateway_listeners.cc
  core/gen/hash_policy.cc core/gen/load_assignment_builder.cc core/gen/name_table.cc core/gen/network_filters.cc
  core/gen/rds.cc
  core/kube/yaml.cc fakes/kube/selector.cc
  core/security/istiod_ca.cc core/security/secret_generator.cc
  core/x509/csr.cc core/x509/key.cc
  fakes/envoy/cluster_config.cc
  fakes/envoy/listener_config.cc
  fakes/envoy/matchers.cc
  fakes/envoy/rbac_config.cc
  fakes/envoy/route_config.cc
  fakes/envoy/router.cc
  scenarios/runner.cc
  sim/timing.cc sim/world.cc)

# wavetank_unity(target): batches a folder's library.
function(wavetank_unity target)
  if(NOT WAVETANK_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  foreach(file IN LISTS WAVETANK_ALONE)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 sees ghosts when it inlines much, and takes the files of a batch for headers.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage -Wno-restrict -Wno-maybe-uninitialized
      -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
  endif()
endfunction()
