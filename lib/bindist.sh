#!/bin/sh
# Makes of an installed tree one that runs wherever it is unpacked:   bindist.sh TREE PROGRAM ARCHIVE...
# PROGRAM replaces bin/weir: it has HDF5 and the compressors in it, and finds what else it needs in lib/weir, where the
# shared libraries of this machine that it uses are copied (glibc's own stay the user's). ARCHIVE... (libweir.a and those
# that it needs) become one libweir.a. weir.pc finds its place by its own.
set -eu
tree=$1 program=$2
shift 2

rm -f "$tree"/lib/libweir.*
install -m 755 "$program" "$tree/bin/weir"
strip "$tree/bin/weir"
mkdir -p "$tree/lib/weir" "$tree/share/doc/weir/licences"

# Loaded from the system in any case: the loader, and what belongs to its libc.
libs=
for file in $(ldd "$tree/bin/weir" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'); do
    name=$(basename "$file")
    case $name in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) continue ;;
    esac
    case $(readlink -f "$file") in
    "$(readlink -f "$tree")"/*) continue ;;
    esac
    install -m 644 "$(readlink -f "$file")" "$tree/lib/weir/$name"
    libs="$libs -l:$name"
    # The notice of the package that it comes from, where the system knows it.
    owner=$(dpkg -S "$(readlink -f "$file")" 2> /dev/null | cut -d: -f1 | head -n 1 || true)
    if [ -n "$owner" ] && [ -f "/usr/share/doc/$owner/copyright" ]; then
        install -m 644 "/usr/share/doc/$owner/copyright" "$tree/share/doc/weir/licences/$owner"
    fi
done
for owner in libhdf5-dev libaec-dev zlib1g-dev libdeflate-dev; do
    [ ! -f "/usr/share/doc/$owner/copyright" ] || install -m 644 "/usr/share/doc/$owner/copyright" "$tree/share/doc/weir/licences/$owner"
done

# ADDLIB keeps members of one name apart that stand in several archives.
{
    echo "CREATE $tree/lib/libweir.a"
    for archive; do echo "ADDLIB $archive"; done
    echo SAVE
    echo END
} | ar -M
strip -g "$tree/lib/libweir.a"

sed -i -e 's|^prefix=.*|prefix=${pcfiledir}/../..|' -e '/^Libs.private:/d' \
    -e "s|^Libs:.*|Libs: -L\${libdir} -lweir -L\${libdir}/weir -Wl,--disable-new-dtags,-rpath,\${libdir}/weir$libs -fopenmp -lm -ldl|" \
    "$tree/lib/pkgconfig/weir.pc"
