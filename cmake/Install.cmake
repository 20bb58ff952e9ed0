# cmake --install: the program, the library with its headers and packages, schemas, man page, completions, the library
# of incidents, the main scenario, documents and examples.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Wavetank)
# Packages bring libraries beside it (BundleLibraries.cmake). DT_RPATH, not DT_RUNPATH, as those look for one another, too.
set_target_properties(wavetank PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/wavetank")
target_link_options(wavetank PRIVATE -Wl,--disable-new-dtags)
install(TARGETS wavetank RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS wavetank_library EXPORT WavetankTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/library/include/wavetank DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/library/include/wavetank/actions.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wavetank)
install(EXPORT WavetankTargets NAMESPACE Wavetank:: DESTINATION ${package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/WavetankConfig.cmake.in
  ${PROJECT_BINARY_DIR}/WavetankConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/WavetankConfigVersion.cmake VERSION ${PROJECT_VERSION}
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/WavetankConfig.cmake ${PROJECT_BINARY_DIR}/WavetankConfigVersion.cmake
  DESTINATION ${package})
configure_file(${PROJECT_SOURCE_DIR}/cmake/wavetank.pc.in ${PROJECT_BINARY_DIR}/wavetank.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/wavetank.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/scenarios/scenario.schema.json ${PROJECT_SOURCE_DIR}/docs/results.schema.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/wavetank)
# `wavetank incidents` finds them beside its own folder (cli/incidents/); stories name manifests by their places.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios/incidents ${PROJECT_SOURCE_DIR}/scenarios/manifests
  ${PROJECT_SOURCE_DIR}/scenarios/gateway-node-port-local
  ${PROJECT_SOURCE_DIR}/scenarios/multi-primary-multi-network
  DESTINATION ${CMAKE_INSTALL_DATADIR}/wavetank/scenarios)
# What a person reads who has the package alone, in the tree that its links know; and the examples, which build against it.
set(documents ${CMAKE_INSTALL_DATADIR}/doc/wavetank)
install(FILES README.md CHANGELOG.md DESTINATION ${documents})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright DESTINATION ${documents})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples DESTINATION ${documents})
install(FILES scenarios/README.md DESTINATION ${documents}/scenarios)
install(FILES ${PROJECT_BINARY_DIR}/library/wavetank.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_BINARY_DIR}/library/wavetank.bash RENAME wavetank
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_BINARY_DIR}/library/_wavetank DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${PROJECT_BINARY_DIR}/library/wavetank.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# cpack --config build/CPackConfig.cmake: a .deb, one for two releases of Debian, and a .tar.gz.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME wavetank)
set(CPACK_PACKAGE_VENDOR "Wavetank")
set(CPACK_PACKAGE_CONTACT "Wavetank <wavetank@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Deterministic simulation of multi-cluster Istio meshes")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/PackageOptions.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/BundleLibraries.cmake)
include(CPack)
