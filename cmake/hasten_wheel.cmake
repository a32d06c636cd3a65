# The wheel: the package hasten/ with its compiled part and the command inside; the plugins are
# beside them in plugins/, and find the libraries of the packages that hasten/ lies beside.
install(TARGETS hasten_core hasten_command COMPONENT wheel
        RUNTIME DESTINATION hasten LIBRARY DESTINATION hasten)
