# For the .tar.gz: the shared libraries that the program needs lie beside it, but for the C library's own, and bin/wavetank
# starts the program with them. So it runs on another release of Debian, whose libraries have other names.
if(NOT CPACK_GENERATOR STREQUAL "TGZ")
  return()
endif()
file(GLOB_RECURSE programs ${CPACK_TEMPORARY_DIRECTORY}/*/bin/wavetank ${CPACK_TEMPORARY_DIRECTORY}/bin/wavetank)
list(GET programs 0 program)
get_filename_component(bin ${program} DIRECTORY)
get_filename_component(prefix ${bin} DIRECTORY)
set(libraries ${prefix}/lib/wavetank)
file(MAKE_DIRECTORY ${libraries})
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${program} RESOLVED_DEPENDENCIES_VAR needed UNRESOLVED_DEPENDENCIES_VAR missing
  POST_EXCLUDE_REGEXES "/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv)\\.so[.0-9]*$")
if(missing)
  message(FATAL_ERROR "not found, and so not bundled: ${missing}")
endif()
file(INSTALL ${needed} DESTINATION ${libraries} FOLLOW_SYMLINK_CHAIN)
file(RENAME ${program} ${libraries}/wavetank)
file(WRITE ${program} [=[
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$here/../lib/wavetank${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/../lib/wavetank/wavetank" "$@"
]=])
file(CHMOD ${program} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
