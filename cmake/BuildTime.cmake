# Most of a compile here goes into reading the same headers and into the same instances of templates. So common headers
# are compiled once and used by every folder's library (sets for those that hold messages or worlds, and for tests), and
# several sources of a folder are compiled as one: a name in an anonymous namespace is therefore unique in its folder.
#
# Neither together with ccache: there a change of one file should compile that file alone, and a change of one header
# is otherwise a miss everywhere. Such builds also show that every file includes what it uses.
if(CCACHE)
  set(WAVETANK_WHOLE_BUILDS OFF)
else()
  set(WAVETANK_WHOLE_BUILDS ON)
endif()
option(WAVETANK_PRECOMPILED_HEADERS "Compile common headers once" ${WAVETANK_WHOLE_BUILDS})
option(WAVETANK_UNITY "Compile several sources of a folder as one" ${WAVETANK_WHOLE_BUILDS})
set(WAVETANK_SINGLE "" CACHE STRING "Targets whose sources are compiled one by one all the same: those being edited")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC collects its garbage from 128 MB on, a twelfth of a unit's time; from 512 MB on a unit still needs under 2 GB.
  add_compile_options("SHELL:--param ggc-min-heapsize=524288")
endif()
if(WAVETANK_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-subobject-linkage)  # of classes that one source has for itself, and which look included here
  endif()
endif()
if(WAVETANK_PRECOMPILED_HEADERS)
  add_compile_options(-pthread)  # its macro must be the same for all who share them
  add_compile_definitions(NOMINMAX)  # so must this, which Debian 13's packages define for some of them
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC forgets that a precompiled header came from the system, and then warns of ghosts in its strings.
    add_compile_options(-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()

set(WAVETANK_COMMON_HEADERS <algorithm> <deque> <functional> <map> <memory> <optional> <set> <string> <string_view>
  <utility> <variant> <vector> <absl/container/flat_hash_map.h> <absl/functional/any_invocable.h>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_split.h> <fmt/format.h> <nlohmann/json.hpp>)
# Our own too, where most of a set's folders read them: what they hold is compiled once, and so are its templates.
set(WAVETANK_PUSH_HEADERS ${PROJECT_SOURCE_DIR}/core/push/push_context.h ${PROJECT_SOURCE_DIR}/core/xds/generator.h)
set(WAVETANK_MESSAGE_HEADERS <google/protobuf/any.pb.h> <google/protobuf/struct.pb.h> <google/protobuf/wrappers.pb.h>
  <envoy/config/core/v3/base.pb.h> <envoy/config/endpoint/v3/endpoint.pb.h> <envoy/config/cluster/v3/cluster.pb.h>
  <envoy/config/listener/v3/listener.pb.h> <envoy/config/route/v3/route.pb.h>
  <envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h>
  <envoy/extensions/transport_sockets/tls/v3/tls.pb.h> <envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h>)
set(WAVETANK_WORLD_HEADERS ${PROJECT_SOURCE_DIR}/sim/world.h)
# The folders whose sources mostly read these.
set(WAVETANK_WORLD_FOLDERS
  "^(sim|sim/invariants|replay|scenarios.*|check/.*|library/(session|swarm)|serve(/debug|/kube|/loop|/pods)?|import|capacity/(metrics|recorded|sweep)|oracles/control_plane)$")

# wavetank_precompile(SET LIBRARIES... HEADERS...): an object library `SET` that holds nothing but the headers.
function(wavetank_precompile set)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS" ${ARGN})
  if(NOT WAVETANK_PRECOMPILED_HEADERS)
    return()
  endif()
  if(NOT EXISTS ${PROJECT_BINARY_DIR}/${set}.cc)  # written again it would be compiled again
    file(WRITE ${PROJECT_BINARY_DIR}/${set}.cc "")
  endif()
  add_library(${set} OBJECT ${PROJECT_BINARY_DIR}/${set}.cc)
  target_link_libraries(${set} PRIVATE ${ARG_LINK})
  target_precompile_headers(${set} PRIVATE ${ARG_HEADERS})
endfunction()

# Lets `target` read what wavetank_precompile(SET) compiled, if it did.
function(wavetank_use_precompiled target set)
  if(TARGET ${set})
    target_precompile_headers(${target} REUSE_FROM ${set})
  endif()
endfunction()

# wavetank_even_batches(TARGET SOURCES...): a unity build compiles the target in as few units as thirteen sources each
# allow, all of about one size: a last unit of one source costs the headers of ten.
function(wavetank_even_batches target)
  list(LENGTH ARGN sources)
  math(EXPR units "(${sources} + 12) / 13")
  math(EXPR size "(${sources} + ${units} - 1) / ${units}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${size})
  if(target IN_LIST WAVETANK_SINGLE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()
