# Builds an image of virtual machines. The program fairlead-testbox runs it with sh, and sets:
#   KIND     busybox (the job sees busybox alone) or debian (it sees a Debian system)
#   TARGET   the folder of the image; it appears whole or not at all
#   PARTS    a folder with guest-init, power-button and take-address
#   KERNEL   a kernel; empty: Debian's kernel for clouds, by apt-get
#   MODULES  the folder of its modules
#   SUITE, PACKAGES, SIZE_MB   of the Debian system: its release, more packages by comma, the size of its disk
set -eu
umask 022
work=$(mktemp -d "$TARGET.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work"
say() { echo "fairlead-testbox: $*" >&2; }

if [ -z "$KERNEL" ]; then
    case $(uname -m) in
        x86_64) package=linux-image-cloud-amd64 ;;
        aarch64) package=linux-image-cloud-arm64 ;;
        *) say "there is no kernel for $(uname -m) (hint: --kernel FILE --modules DIR)"; exit 1 ;;
    esac
    say "getting the kernel"
    apt-cache show "$package" >/dev/null 2>&1 || apt-get -q update >&2
    exact=$(apt-cache depends "$package" | awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ {print $2; exit}')
    # apt's own user may not write here, and says so.
    apt-get -q download "${exact:-$package}" >/dev/null 2>&1
    dpkg-deb -x ./*.deb kernel
    KERNEL=$(ls kernel/boot/vmlinuz-*)
    MODULES=$work/kernel/lib/modules
fi

say "making the initrd"
mkdir -p root/bin root/dev root/proc root/sys root/run root/tmp root/root root/modules root/etc/acpi/PWRF
cp "$(command -v busybox)" root/bin/busybox
cp "$PARTS/guest-init" root/init
cp "$PARTS/take-address" root/bin/take-address
cp "$PARTS/power-button" root/etc/acpi/PWRF/00000080
chmod 755 root/init root/bin/take-address root/etc/acpi/PWRF/00000080
# In the order in which they need each other. Those that are not there are in the kernel.
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_mmio virtio_blk \
    failover net_failover virtio_net crc16 crc32c_generic libcrc32c mbcache jbd2 ext4 evdev button; do
    file=$(find "$MODULES" -name "$module.ko*" 2>/dev/null | head -n 1)
    case $file in
        *.xz) xz -dc "$file" > "root/modules/$module.ko" ;;
        *.zst) zstd -qdc "$file" > "root/modules/$module.ko" ;;
        *.gz) gzip -dc "$file" > "root/modules/$module.ko" ;;
        *.ko) cp "$file" root/modules/ ;;
        *) continue ;;
    esac
    echo "$module" >> root/modules/order
done
touch root/modules/order
mkdir image
(cd root && find . | cpio -o -H newc --quiet | gzip -1) > image/initrd
cp "$KERNEL" image/kernel

if [ "$KIND" = debian ]; then
    say "making the Debian system: some minutes"
    debootstrap --variant=minbase ${PACKAGES:+--include="$PACKAGES"} "$SUITE" system >&2
    rm -rf system/var/cache/apt/archives/*.deb system/var/lib/apt/lists/*
    truncate -s "${SIZE_MB}M" image/disk
    mkfs.ext4 -q -d system image/disk
fi
chmod 755 image
if [ -e "$TARGET" ]; then mv "$TARGET" old; fi
mv image "$TARGET"
say "$TARGET is there"
