# The shared libraries that the program needs lie in lib/wavetank beside it, where its DT_RPATH finds them (Install.cmake), so
# that a package made on one release of Debian runs on another, whose libraries have other names.
# What a package leaves to the system, by the names of the libraries' files:
set(of_every_system "ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv")
# The same ABI under the same name of a package in Debian 12 and 13, security updates included. The compiler's libraries
# are newer there, which what another compiler makes beside them may need.
set(of_debian "libstdc\\+\\+|libgcc_s|libssl|libcrypto|libz|libzstd|liblzma|libbz2|libsqlite3|libcurl|libarchive|libnghttp2|libxxhash")
if(CPACK_GENERATOR STREQUAL "DEB")
  set(left_out "${of_every_system}|${of_debian}")
else()
  set(left_out "${of_every_system}")
endif()
file(GLOB_RECURSE programs ${CPACK_TEMPORARY_DIRECTORY}/*/bin/wavetank ${CPACK_TEMPORARY_DIRECTORY}/bin/wavetank)
list(GET programs 0 program)
get_filename_component(bin ${program} DIRECTORY)
get_filename_component(prefix ${bin} DIRECTORY)
set(libraries ${prefix}/lib/wavetank)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${program} RESOLVED_DEPENDENCIES_VAR needed UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^(${left_out})\\.so[.0-9]*$")
if(missing)
  message(FATAL_ERROR "not found, and so not bundled: ${missing}")
endif()
file(MAKE_DIRECTORY ${libraries})
set(bundled "")  # the packages that they come from
foreach(library ${needed})
  # By the name that it is looked for, without the chain of links to it.
  get_filename_component(name ${library} NAME)
  get_filename_component(file ${library} REALPATH)
  file(COPY_FILE ${file} ${libraries}/${name})
  get_filename_component(file ${file} NAME)
  execute_process(COMMAND dpkg-query --search "*/${file}" OUTPUT_VARIABLE packages COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "^[^:,]+" package "${packages}")
  list(APPEND bundled -x${package})
endforeach()
if(CPACK_GENERATOR STREQUAL "DEB")
  # What the rest comes from, with the versions that all that lies in the package needs. cpack's own call cannot leave out
  # packages, and looks for bundled libraries in the system, too.
  set(scratch ${CPACK_TEMPORARY_DIRECTORY}/debian)
  file(WRITE ${scratch}/control "")
  file(GLOB binaries ${libraries}/* ${program} ${prefix}/lib/lib*.so*)
  execute_process(COMMAND dpkg-shlibdeps ${bundled} --ignore-missing-info --warnings=0 -O ${binaries}
    WORKING_DIRECTORY ${CPACK_TEMPORARY_DIRECTORY} OUTPUT_VARIABLE dependencies COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE ${scratch})
  string(REGEX REPLACE "^shlibs:Depends=|\n" "" CPACK_DEBIAN_PACKAGE_DEPENDS "${dependencies}")
endif()
