# How a map of winners looks: a field a problem, in the colour of the kernel that is fastest there, with its letter; fields of a tie
# are cut into strips. `kbench plot` writes NAME.gp: first the figure's own values, then this text. Needs gnuplot 5.0.
#
# Values: width, height, head, foot (pixels above and below the axes), title, xname, yname, figure (file name), columns, lines (how
# many fields), key_rows, kernels (how many), name(i) for the key; objects, labels, ticks as they stand above.
#
# Read at 85 mm, as in lines.gp: letters of 20 come out at 7.5 points.

set terminal svg noenhanced size width, height font 'sans-serif,20' background rgb 'white'
set output figure

set tmargin at screen 1 - head / height
set bmargin at screen foot / height
set lmargin at screen 112.0 / width
set rmargin at screen 1 - 26.0 / width
set label 1 title at screen 0.5, screen 1 - 20.0 / height center font ',17'
set label 2 xname at screen 0.54, screen (foot - 56.0) / height center
set label 3 yname at screen 18.0 / width, screen (1 + (foot - head) / height) / 2 center rotate by 90
set border 0
set tics nomirror scale 0 textcolor rgb '#202020'
set xtics offset 0, 0.35
set xrange [-0.5:columns - 0.5]
set yrange [-0.5:lines - 0.5]
set key at screen 0.5, screen (foot - 74.0) / height center top vertical maxrows key_rows
set key reverse Left samplen 1 spacing 1.05 width -2

plot for [i=1:kernels] NaN with points pt 5 ps 1.6 lc rgb word(colours, i) title name(i)
